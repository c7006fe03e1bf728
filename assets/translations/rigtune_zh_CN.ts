<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
<context>
    <name>AdvicePage</name>
    <message>
        <source>Advice</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look Again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to advise</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing on this machine stands in the way of a fast model. What a search finds out is shown with its result.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Good to know</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hint</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Warning</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Problem</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Close message</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt (optional): how the model should be</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask something</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model is loaded with the first message and runs on this machine only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unloaded for the search; loaded again with the next message.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waiting for the running search…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loading the model…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stopped</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model has no chat template: it continues your text instead.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Restart</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The context is full. Begin a new chat, or tune for a longer context.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>broken off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Closing</name>
    <message>
        <source>A search is running</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A search is running. Stop it and close RigTune?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was measured is kept, and the next search can go on from there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop and Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep Searching</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Comparison</name>
    <message>
        <source>Time for one request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}: decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}: time</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write a message. Enter sends it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Constraints</name>
    <message>
        <source>Context length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Context length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Slowest acceptable decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Time to spend</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>automatic</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory to &amp;leave free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Allow an 8-bit KV cache (q8_0) where it wins clearly</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context length, tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ContextPlot</name>
    <message>
        <source>Speed as the context fills</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens in context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode, tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not measured in this search.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Floor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode goes from {first} at {shallow} tokens to {last} at {deep} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DashboardPage</name>
    <message>
        <source>Dashboard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last minute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last 5 minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last 30 minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show readings as table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking at your machine…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Probes read the drivers, and the engine lists its devices.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No GPU found: neither a driver nor the engine reports one. Everything works on the CPU, only slower.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This machine could not be read.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>DeviceCard</name>
    <message>
        <source>Readings of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quantity</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lowest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mean</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Highest</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>EstimatePanel</name>
    <message>
        <source>Estimate</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the model…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>RAM</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>At most {n} of {all} layers fit on the GPU at this context.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The longest context that fits is {n} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Estimated, ± {n}&#xa0;%.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>GoalStep</name>
    <message>
        <source>What is it for?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Bounds</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Make a Plan</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} blocks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{used} of {all} experts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no chat template</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>an adapter that belongs to another model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the image part of another model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a vocabulary without weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a model that turns text into numbers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is {what}: it writes no text, so there is nothing to tune.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>GpuCard</name>
    <message>
        <source>This engine build has no backend for this GPU, so it will not be used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>asleep</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It sleeps to save power. RigTune does not wake it for a graph.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>seen by the engine only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>waiting for readings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>throttled: {why}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>awake</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>working</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>idle</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>discrete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>integrated</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>software device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>remote device</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>driver {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>PCIe {gen} x{width}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>drives the display</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>engine: {names}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>HostCard</name>
    <message>
        <source>Processor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>on battery: slower</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{cores} cores, {threads} threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{size} RAM</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Language</name>
    <message>
        <source>en</source>
        <comment>code of this language: en or zh</comment>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>LiveStrip</name>
    <message>
        <source>{name}: no readings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}: now {now}, between {low} and {high}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Dashboard</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find best settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Results</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Advice</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{need} of {free} free</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MemorySplit</name>
    <message>
        <source>Memory: {used} used, {free} free of {total}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Menus</name>
    <message>
        <source>&amp;File</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Open Model…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;New Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look: as the &amp;System</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look: &amp;Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look: &amp;Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Keyboard Shortcuts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;About RigTune</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat: send (Shift+Enter: new line)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop what runs on this page</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&lt;b&gt;RigTune {version}&lt;/b&gt;&lt;br&gt;Finds the best llama.cpp settings for the GPU you own and shows why.&lt;br&gt;Apache License 2.0. Works offline; nothing leaves this machine.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About RigTune</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>You</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy this message</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Meter</name>
    <message>
        <source>Context in use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading the prompt…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{speed} · first token after {ttft}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{decode} · first token {ttft} · prompt {n} tokens, {prefill}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens, {speed}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{used} of {all} tokens</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Model and settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Demo model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, default settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, tuned</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ModelStep</name>
    <message>
        <source>Models on this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One click</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Or choose a model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search Again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open File…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A .gguf file can also be dropped here. Files are read where they lie.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose Goal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the demo model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tunes {model} for chat. Takes a few minutes and asks nothing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Demo: Gemma 3 270M</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GGUF models (*.gguf);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PlanStep</name>
    <message>
        <source>Making the plan…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Goal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Budget</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GPU layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stages of the plan</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stage</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Loads of the model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is loaded yet. You can stop at any time and keep the results.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Measuring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About {low} to {high}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{low} to {high}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none: this search runs on the CPU</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>up to {n} of {all} fit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed on the CPU</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>none: on a loaded model</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>PlotTwin</name>
    <message>
        <source>Table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show as table: {title}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Result</name>
    <message>
        <source>Recommended</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Knee: saves memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>llama.cpp&apos;s own fit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>CPU only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>RAM only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As fast as llama.cpp&apos;s own automatic fit.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{gain}&#xa0;% faster than llama.cpp&apos;s own automatic fit.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>RigTune: {model}, search {status}, trials {n}, loads {loads}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speeds {depth}:</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}: {decode} decode, {prefill} tok/s prefill, {time} per request, {memory}; {settings}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ResultView</name>
    <message>
        <source>Recommended</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Request</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Why</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recommended settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Setting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Value</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy as Text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat with These Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No reasons were recorded.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied to the clipboard: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>search {status}: trials {n}, loads {loads}, {time}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No configuration could be recommended</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recommended · speeds {depth}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The result is on the clipboard.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>ResultsPage</name>
    <message>
        <source>Results</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No results yet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each search is kept here with everything it measured.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stored searches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Goal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Started</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Trials</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>RunStep</name>
    <message>
        <source>Measuring</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Everything measured so far is kept (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of the search</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring {model}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopping; what was measured is kept…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Trial {n}: {settings}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{elapsed} of about {low} to {high} · trials {trials}, loads {loads} · {best}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>best so far: {what}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>{page} (Ctrl+{n})</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>StepLine</name>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Goal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plan</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Result</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step {n} of {count}: {name}</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Strips</name>
    <message>
        <source>Busy time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>VRAM in use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Power</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Core clock</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shared memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>PCIe to the GPU</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>CPU busy time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>RAM available</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Swap in use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>CPU temperature</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>SweepPlot</name>
    <message>
        <source>Speed by settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Depth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prefill tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Against</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Knee</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Recommended</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cliff</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>● measured, with 95 % interval</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>▽ spilled into shared memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>✕ did not run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No speed measured yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{measure} is best at {knob} {x:g}: {speed}. Trials shown: {n}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>WizardPage</name>
    <message>
        <source>Find best settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New Search</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Words</name>
    <message>
        <source>fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tight</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compute buffers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Driver and growth</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Short questions, quick answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Documents</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Long texts in, summaries out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Agent</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Four requests at the same time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Long context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The longest memory that stays fast enough</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quiet</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat with less heat and noise</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quick, up to 3 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Standard, up to 12 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thorough, up to 45 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>complete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stopped at its budget</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>stopped by you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>measured</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>out of memory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>load failed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not supported</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>timed out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>device lost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>engine crashed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>spilled</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>throttled</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>starting the engine</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>loading weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>creating the context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>warming up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>timing prefill</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>timing decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GPU layers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Expert layers on CPU</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prefill threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompt batch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Physical batch</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context length</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Flash attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>K cache type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>V cache type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights in RAM</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Devices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parallel sequences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens in context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Trial</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Baseline: llama.cpp&apos;s own fit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Baseline: CPU only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which device is fastest</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>How many layers on the GPU</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Weights in RAM: mapped or pinned</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV cache type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed with a filling context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Final: the best two, compared in turns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>clock setting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>power limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>hardware slowdown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>kept in step with another card</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>heat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>heat, hardware limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>power brake</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>display clocks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>board limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>voltage limit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>processor or board too hot</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>another reason</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Something went wrong.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{sentence} ({details})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not finished</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>with an empty context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>at {n} tokens in context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GPU layers {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>context {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>batch {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>expert layers on CPU {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>threads {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV {k}/{v}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>flash attention off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>weights pinned</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
