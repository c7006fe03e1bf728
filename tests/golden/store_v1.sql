-- What RigTune's database of version 1.0 looks like, with one of everything. Never edit:
-- a later version must be able to open it.
CREATE TABLE machines (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
    seen_utc TEXT NOT NULL);
CREATE TABLE engines (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL,
    seen_utc TEXT NOT NULL);
CREATE TABLE models (
    fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, arch TEXT NOT NULL,
    path TEXT NOT NULL, file_bytes INTEGER NOT NULL, n_layer INTEGER NOT NULL,
    seen_utc TEXT NOT NULL);
CREATE TABLE sweeps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_utc TEXT NOT NULL,
    status TEXT,
    fingerprint TEXT NOT NULL,
    request TEXT NOT NULL,
    plan TEXT NOT NULL,
    result TEXT,
    policy_version INTEGER NOT NULL,
    model TEXT NOT NULL REFERENCES models(fingerprint),
    machine INTEGER NOT NULL REFERENCES machines(id),
    engine INTEGER REFERENCES engines(id));
CREATE INDEX sweeps_by_fingerprint ON sweeps(fingerprint);
CREATE TABLE trials (
    sweep INTEGER NOT NULL REFERENCES sweeps(id) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    stage TEXT NOT NULL,
    outcome TEXT NOT NULL,
    load_id INTEGER NOT NULL,
    n_gpu_layers INTEGER NOT NULL,
    n_ctx INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    ended_utc TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (sweep, n));
CREATE TABLE profiles (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, model TEXT NOT NULL, created_utc TEXT NOT NULL,
    deleted_utc TEXT, record TEXT NOT NULL);
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, system TEXT NOT NULL,
    model_name TEXT NOT NULL, profile_id TEXT, created_utc TEXT NOT NULL,
    updated_utc TEXT NOT NULL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    parent INTEGER REFERENCES messages(id) ON DELETE CASCADE,
    role TEXT NOT NULL, content TEXT NOT NULL, timing TEXT, created_utc TEXT NOT NULL);
CREATE INDEX messages_by_conversation ON messages(conversation);
CREATE INDEX messages_by_parent ON messages(parent);
CREATE VIRTUAL TABLE message_index USING fts5(
    content, content='messages', content_rowid='id', tokenize='trigram');
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    INSERT INTO message_index(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
    INSERT INTO message_index(message_index, rowid, content)
    VALUES ('delete', old.id, old.content); END;
CREATE TRIGGER message_changed AFTER UPDATE OF content ON messages BEGIN
    INSERT INTO message_index(message_index, rowid, content)
    VALUES ('delete', old.id, old.content);
    INSERT INTO message_index(rowid, content) VALUES (new.id, new.content); END;
CREATE TABLE calibrations (
    key TEXT PRIMARY KEY, driver_context_bytes INTEGER NOT NULL,
    growth_bytes INTEGER NOT NULL, n_loads INTEGER NOT NULL, seen_utc TEXT NOT NULL);
INSERT INTO machines (id, name, record, seen_utc)
VALUES (1, 'A CPU', '{"host":{"os":"linux","os_version":null,"cpu_name":"A CPU","cores_physical":null,"cores_logical":null,"cores_performance":null,"ram_bytes":null,"ram_available_bytes":null,"swap_bytes":null,"power_source":"unknown","battery_pct":null,"is_laptop":null,"virtualization":null,"missing":{}},"gpus":[],"engine":{"version":"0.3","llama_version":"b1","commit":null,"backends":["CUDA"],"devices":[{"name":"CUDA0","backend":"CUDA","description":"A card","kind":"discrete","total_bytes":8,"free_bytes":null,"pci_id":null,"endpoint":null}],"supports_offload":true},"unavailable":{}}', '2026-11-29T19:35:09.799+00:00');
INSERT INTO engines (id, name, record, seen_utc)
VALUES (1, 'llama.cpp b1 (0.3; CUDA)', '{"version":"0.3","llama_version":"b1","commit":null,"backends":["CUDA"],"devices":[{"name":"CUDA0","backend":"CUDA","description":"A card","kind":"discrete","total_bytes":8,"free_bytes":null,"pci_id":null,"endpoint":null}],"supports_offload":true}', '2026-11-29T19:35:09.799+00:00');
INSERT INTO models (fingerprint, name, arch, path, file_bytes, n_layer, seen_utc)
VALUES ('f00d', 'Tiny', 'llama', '/models/tiny.gguf', 1000, 4, '2026-11-29T19:35:09.799+00:00');
INSERT INTO sweeps (id, created_utc, status, fingerprint, request, plan, result, policy_version, model, machine, engine)
VALUES (1, '2026-11-29T19:35:09.799+00:00', 'complete', '{"model":"f00d","engine":"llama.cpp b1 (0.3; CUDA)","driver":"","devices":["CUDA0 A card 8"],"power_source":"unknown","goal":"chat"}', '{"goal":"chat","n_ctx_min":null,"floor_tok_s":null,"headroom_bytes":null,"kv_types":["f16"],"pinned":{},"budget":"standard","devices":[]}', '{"request":{"goal":"chat","n_ctx_min":null,"floor_tok_s":null,"headroom_bytes":null,"kv_types":["f16"],"pinned":{},"budget":"standard","devices":[]},"space":{"model":{"name":"Tiny","n_layer":4,"n_expert":0,"n_ctx_train":null,"file_bytes":1000},"host":{"cores_physical":2,"cores_logical":4,"ram_bytes":1073741824},"devices":[],"load_s":1.0},"workload":{"n_prompt":512,"n_gen":64,"depth":0,"n_seq":1},"n_ctx":4096,"stages":[],"max_n_gpu_layers":5,"first":null,"time_low_s":1.0,"time_high_s":2.0,"notes":[]}', '{"status":"complete","recommended":{"settings":{"n_gpu_layers":5,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"prefill_tok_s":null,"decode_tok_s":null,"request_s":1.5,"device_bytes":{"CUDA0":8},"trial":0,"profile_id":null},"knee":null,"cliff":null,"baseline_auto_fit":null,"baseline_cpu":null,"context_curve":[],"trials":[],"n_model_loads":1,"measured_s":0.0,"virtual_s":0.0,"reasons":[],"ties":[],"error":null}', 1, 'f00d', 1, 1);
INSERT INTO trials (sweep, n, stage, outcome, load_id, n_gpu_layers, n_ctx, depth, ended_utc, record)
VALUES (1, 0, 'layers', 'ok', 1, 5, 4096, 0, '2025-01-01T00:00:00Z', '{"request":{"stage":"layers","settings":{"n_gpu_layers":5,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"workload":{"n_prompt":512,"n_gen":64,"depth":0,"n_seq":1},"min_reps":3,"max_reps":8,"max_s":20.0},"load_id":1,"outcome":"ok","effective":{"n_gpu_layers":5,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"prefill":[{"n_tok":512,"ns":1000000}],"decode":[{"n_tok":64,"ns":1000000}],"device_bytes":{},"host_bytes":null,"shared_growth_bytes":null,"load_s":null,"elapsed_s":0.0,"telemetry":null,"error":null,"log_tail":[],"ended_utc":"2025-01-01T00:00:00Z"}');
INSERT INTO trials (sweep, n, stage, outcome, load_id, n_gpu_layers, n_ctx, depth, ended_utc, record)
VALUES (1, 1, 'layers', 'out_of_memory', 1, 9, 4096, 0, '2025-01-01T00:00:00Z', '{"request":{"stage":"layers","settings":{"n_gpu_layers":9,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"workload":{"n_prompt":512,"n_gen":64,"depth":0,"n_seq":1},"min_reps":3,"max_reps":8,"max_s":20.0},"load_id":1,"outcome":"out_of_memory","effective":{"n_gpu_layers":9,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"prefill":[{"n_tok":512,"ns":1000000}],"decode":[{"n_tok":64,"ns":1000000}],"device_bytes":{},"host_bytes":null,"shared_growth_bytes":null,"load_s":null,"elapsed_s":0.0,"telemetry":null,"error":null,"log_tail":[],"ended_utc":"2025-01-01T00:00:00Z"}');
INSERT INTO profiles (id, name, model, created_utc, deleted_utc, record)
VALUES ('abc234', 'Quick', 'f00d', '2026-11-29T19:35:09.801+00:00', NULL, '{"id":"abc234","name":"Quick","settings":{"n_gpu_layers":5,"n_cpu_moe":0,"n_ctx":4096,"n_batch":2048,"n_ubatch":512,"flash_attn":"on","type_k":"f16","type_v":"f16","n_threads":0,"n_threads_batch":0,"load_mode":"mmap","devices":[],"n_seq_max":1},"model_fingerprint":"f00d","model_name":"Tiny","model_path":"/models/tiny.gguf","n_layer":null,"goal":null,"prefill_tok_s":null,"decode_tok_s":null,"request_s":null,"device_bytes":{},"machine":"","engine":"","sweep_id":1,"created_utc":"2026-11-29T19:35:09.801+00:00"}');
INSERT INTO conversations (id, title, system, model_name, profile_id, created_utc, updated_utc)
VALUES (1, 'The sea', 'Be brief.', 'Tiny', NULL, '2026-11-29T19:35:09.801+00:00', '2026-11-29T19:35:09.801+00:00');
INSERT INTO messages (id, conversation, parent, role, content, timing, created_utc)
VALUES (1, 1, NULL, 'user', 'Write one sentence about tides.', NULL, '2026-11-29T19:35:09.801+00:00');
INSERT INTO calibrations (key, driver_context_bytes, growth_bytes, n_loads, seen_utc)
VALUES ('{"device":"GPU-1","driver":"nvidia 580","backend":"CUDA","flash_attn":true,"n_ubatch":512,"cpu_layers":false,"depth_bucket":4096,"family":"llama"}', 530, 80, 1, '2026-11-29T19:35:09.802+00:00');
