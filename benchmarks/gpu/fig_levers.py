"""Settings few people touch, each against the same base; and speed as the context fills."""

from typing import Any

from bare import Bare
from lab import Lab, brief, run

from app.domain.settings import FlashAttn, LoadMode
from app.domain.trial import Workload


def levers(lab: Lab) -> None:
    """Half of the layers on the card: load mode, batch, threads; and what fewer logits save."""
    half = lab.spec("a").n_layer // 2
    base = lab.settings(half, n_ctx=4096)
    prompt = Workload(n_prompt=lab.pick(2048, 64), n_gen=16)
    usual = Workload(n_prompt=lab.pick(512, 32), n_gen=32)
    rows: list[tuple[str, dict[str, Any], Workload]] = [
        ("base", {}, usual),
        *((f"n_ubatch {n}", {"n_ubatch": n}, prompt) for n in (128, 512, 1024, 2048)),
        *((f"n_threads {n}", {"n_threads": n}, usual) for n in thread_counts(lab)),
        ("base again", {}, usual),
        ("load_mode none", {"load_mode": LoadMode.NONE}, usual),
        *(
            (f"load_mode none, n_ubatch {n}", {"load_mode": LoadMode.NONE, "n_ubatch": n}, prompt)
            for n in (512, 2048)
        ),
    ]
    with lab.stand_in():
        with lab.rig("a") as rig:
            for name, changes, work in rows:
                if lab.left_s < lab.pick(8, 0):
                    lab.result.add("left_out", name)
                    continue
                settings = lab.settings(half, **{"n_ctx": 4096, **changes})
                lab.result.put(name, brief(run(rig, settings, work, 2)))
        lab.result.put("n_outputs_max", outputs(lab, base.n_ubatch))


def thread_counts(lab: Lab) -> tuple[int, ...]:
    """Return a quarter, a half, three quarters and all of the cores."""
    return tuple(dict.fromkeys(max(1, lab.threads * k // 4) for k in (1, 2, 3, 4)))


def outputs(lab: Lab, n_ubatch: int) -> list[dict[str, Any]]:
    """Return compute bytes of a context with the default rows of logits and with one row."""
    if lab.tiny:  # the bare program has no stand-in device
        return []
    bare = Bare(lab.path("a"), lab.spec("a").max_gpu_layers, lab.threads)
    try:
        return [
            bare.ask("context", n_outputs_max=rows, n_ubatch=n_ubatch, n_ctx=4096)
            for rows in (0, 1)
        ]
    finally:
        bare.close()


def depth(lab: Lab) -> None:
    """Decode and prefill with the context filled, per KV type; whole and half on the card."""
    spec = lab.spec("a")
    depths = lab.pick((0, 4096, 16384, 32768), (0, 128))
    n_ctx = lab.pick(33792, 1024)
    work = Workload(n_prompt=lab.pick(512, 32), n_gen=32)
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"type_k": "q8_0", "type_v": "q8_0"},
        {"flash_attn": FlashAttn.OFF},
        {"type_k": "q4_0", "type_v": "q4_0"},
    )
    cases = [(spec.max_gpu_layers, kind, depths) for kind in kinds]
    cases.insert(2, (spec.n_layer // 2, {}, depths[:3]))
    with lab.stand_in(), lab.rig("a") as rig:
        for layers, kind, some in cases:
            for tokens in some:
                if lab.left_s < lab.pick(10, 0):
                    lab.result.add("left_out", [layers, kind, tokens])
                    continue
                settings = lab.settings(layers, n_ctx=n_ctx, **kind)
                deep = Workload(n_prompt=work.n_prompt, n_gen=work.n_gen, depth=tokens)
                lab.result.add("rows", brief(run(rig, settings, deep, 2)))
