<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
<context>
    <name>AdvicePage</name>
    <message>
        <source>Advice</source>
        <translation>建议</translation>
    </message>
    <message>
        <source>Look Again</source>
        <translation>重新检查</translation>
    </message>
    <message>
        <source>Test Each Device</source>
        <translation>测试每个设备</translation>
    </message>
    <message>
        <source>Starts the engine and runs a trial of about five seconds on every device.</source>
        <translation>启动引擎，并在每个设备上运行约五秒的试验。</translation>
    </message>
    <message>
        <source>Nothing to advise</source>
        <translation>没有建议</translation>
    </message>
    <message>
        <source>Nothing on this machine stands in the way of a fast model. What a search finds out is shown with its result.</source>
        <translation>这台机器上没有什么妨碍模型快速运行。搜索得出的发现会与其结果一起显示。</translation>
    </message>
    <message>
        <source>Stop Test</source>
        <translation>停止测试</translation>
    </message>
    <message>
        <source>Devices and time limits</source>
        <translation>设备与时间限制</translation>
    </message>
    <message>
        <source>in order</source>
        <translation>正常</translation>
    </message>
    <message>
        <source>left out</source>
        <translation>已略过</translation>
    </message>
    <message>
        <source>Good to know</source>
        <translation>值得了解</translation>
    </message>
    <message>
        <source>Hint</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>Problem</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>To see that it worked: {check}</source>
        <translation>确认是否生效：{check}</translation>
    </message>
</context>
<context>
    <name>Alternatives</name>
    <message>
        <source>answers at {speed}, but the whole request takes longer</source>
        <translation>以 {speed} 作答，但整个请求耗时更长</translation>
    </message>
    <message>
        <source>{n} tokens of context; {speed} when it is full</source>
        <translation>上下文 {n} 个 token；填满时 {speed}</translation>
    </message>
    <message>
        <source>{speed} at {watts} W instead of {now} W</source>
        <translation>{speed}，功耗 {watts} W（现为 {now} W）</translation>
    </message>
    <message>
        <source>Alternatives</source>
        <translation>其他选择</translation>
    </message>
    <message>
        <source>Search for It</source>
        <translation>为此搜索</translation>
    </message>
    <message>
        <source>Search: {what}</source>
        <translation>搜索：{what}</translation>
    </message>
    <message>
        <source>Faster</source>
        <translation>更快</translation>
    </message>
    <message>
        <source>nothing that was measured answers faster</source>
        <translation>已测量的配置中没有作答更快的</translation>
    </message>
    <message>
        <source>Longer context</source>
        <translation>更长的上下文</translation>
    </message>
    <message>
        <source>no longer context was measured in this search</source>
        <translation>本次搜索未测量更长的上下文</translation>
    </message>
    <message>
        <source>Quieter</source>
        <translation>更安静</translation>
    </message>
    <message>
        <source>nothing that was measured draws clearly less power</source>
        <translation>已测量的配置中没有明显更省电的</translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Close message</source>
        <translation>关闭消息</translation>
    </message>
</context>
<context>
    <name>CapsCard</name>
    <message>
        <source>Power limits</source>
        <translation>功率上限</translation>
    </message>
    <message>
        <source>Measure Power Limits</source>
        <translation>测量功率上限</translation>
    </message>
    <message>
        <source>Use This Limit</source>
        <translation>使用此上限</translation>
    </message>
    <message>
        <source>Copy Administrator&apos;s Commands</source>
        <translation>复制管理员命令</translation>
    </message>
    <message>
        <source>Measures speed, draw, temperature and fan at each power limit, 2 to 7 minutes each, and puts the limit back. The system asks for a password; without it, pauses between tokens are measured instead.</source>
        <translation>在每个功率上限下测量速度、功耗、温度和风扇，每次 2 至 7 分钟，然后恢复上限。系统会要求输入密码；没有密码时改为测量 token 之间的停顿。</translation>
    </message>
    <message>
        <source>What each power limit gives</source>
        <translation>各功率上限的效果</translation>
    </message>
    <message>
        <source>Limit</source>
        <translation>上限</translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation>生成 tok/s</translation>
    </message>
    <message>
        <source>Draw W</source>
        <translation>功耗 W</translation>
    </message>
    <message>
        <source>tok/J</source>
        <translation>tok/J</translation>
    </message>
    <message>
        <source>°C</source>
        <translation>°C</translation>
    </message>
    <message>
        <source>Fan %</source>
        <translation>风扇 %</translation>
    </message>
    <message>
        <source>After 30 min tok/s (estimated)</source>
        <translation>30 分钟后 tok/s（估计）</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>正在启动…</translation>
    </message>
    <message>
        <source>Waiting for the system&apos;s password prompt…</source>
        <translation>正在等待系统的密码提示…</translation>
    </message>
    <message>
        <source>Loading the model…</source>
        <translation>正在加载模型…</translation>
    </message>
    <message>
        <source>{value} ({n} of {all}): {speed} tok/s, {watts} W, {temp} °C</source>
        <translation>{value}（{n} / {all}）：{speed} tok/s，{watts} W，{temp} °C</translation>
    </message>
    <message>
        <source>{cap} W is the best: {loss} % slower than the fastest, {saved} % less energy per request.</source>
        <translation>{cap} W 最佳：比最快慢 {loss} %，每次请求节能 {saved} %。</translation>
    </message>
    <message>
        <source>There is no power limit to measure here.</source>
        <translation>这里没有可测量的功率上限。</translation>
    </message>
    <message>
        <source>The quiet mode paces: short pauses between tokens, without any rights.</source>
        <translation>安静模式通过节奏控制：在 token 之间短暂停顿，无需任何权限。</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>被拒绝</translation>
    </message>
    <message>
        <source>{limit} (still warming)</source>
        <translation>{limit}（仍在升温）</translation>
    </message>
    <message>
        <source>{watts} W</source>
        <translation>{watts} W</translation>
    </message>
    <message>
        <source>at work {share} %</source>
        <translation>工作占比 {share} %</translation>
    </message>
    <message>
        <source>Chats on this device keep to that limit from now on.</source>
        <translation>从现在起，此设备上的聊天遵守该上限。</translation>
    </message>
    <message>
        <source>The commands are on the clipboard.</source>
        <translation>命令已在剪贴板上。</translation>
    </message>
</context>
<context>
    <name>ChatDialogs</name>
    <message>
        <source>The text is overwritten on the disk; it cannot come back.</source>
        <translation>文字会在磁盘上被覆盖，无法恢复。</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Export conversation</source>
        <translation>导出对话</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>JSON, all branches (*.json)</source>
        <translation>JSON，所有分支 (*.json)</translation>
    </message>
    <message>
        <source>Attach text files</source>
        <translation>附加文本文件</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>How the model is asked</source>
        <translation>如何向模型提问</translation>
    </message>
    <message>
        <source>Local server</source>
        <translation>本地服务器</translation>
    </message>
    <message>
        <source>New Chat</source>
        <translation>新聊天</translation>
    </message>
    <message>
        <source>Delete this message and everything that follows it?</source>
        <translation>删除此消息及其后的所有内容？</translation>
    </message>
    <message>
        <source>Ask something</source>
        <translation>问点什么</translation>
    </message>
    <message>
        <source>The model is loaded with the first message and runs on this machine only.</source>
        <translation>发送第一条消息时加载模型，且只在这台机器上运行。</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>正在停止…</translation>
    </message>
</context>
<context>
    <name>Closing</name>
    <message>
        <source>A search is running</source>
        <translation>搜索正在进行</translation>
    </message>
    <message>
        <source>A search is running. Stop it and close RigTune?</source>
        <translation>搜索正在进行。要停止它并关闭 RigTune 吗？</translation>
    </message>
    <message>
        <source>What was measured is kept, and the next search can go on from there.</source>
        <translation>已测量的内容会保留，下次搜索可以从那里继续。</translation>
    </message>
    <message>
        <source>Stop and Close</source>
        <translation>停止并关闭</translation>
    </message>
    <message>
        <source>Keep Searching</source>
        <translation>继续搜索</translation>
    </message>
    <message>
        <source>Go On in the Background</source>
        <translation>在后台继续</translation>
    </message>
    <message>
        <source>Minimise and Go On</source>
        <translation>最小化并继续</translation>
    </message>
    <message>
        <source>RigTune: a search is running</source>
        <translation>RigTune：搜索正在进行</translation>
    </message>
    <message>
        <source>Show RigTune</source>
        <translation>显示 RigTune</translation>
    </message>
    <message>
        <source>The search goes on. Click here to see it again.</source>
        <translation>搜索仍在继续。点击此处重新查看。</translation>
    </message>
</context>
<context>
    <name>CodeBlock</name>
    <message>
        <source>code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>复制此代码</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>代码</translation>
    </message>
</context>
<context>
    <name>Compare</name>
    <message>
        <source>One of them has no speed to compare.</source>
        <translation>其中一个没有可比较的速度。</translation>
    </message>
    <message>
        <source>Decode speeds differ by less than measurements scatter.</source>
        <translation>两者的生成速度之差小于测量误差。</translation>
    </message>
    <message>
        <source>{name} decodes {gain}&#xa0;% faster.</source>
        <translation>{name} 的生成速度快 {gain}&#xa0;%。</translation>
    </message>
    <message>
        <source>Decode, tok/s</source>
        <translation>生成，tok/s</translation>
    </message>
    <message>
        <source>Prefill, tok/s</source>
        <translation>预填充，tok/s</translation>
    </message>
    <message>
        <source>Time for one request</source>
        <translation>一次请求的时间</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>differs</source>
        <translation>不同</translation>
    </message>
</context>
<context>
    <name>CompareView</name>
    <message>
        <source>Compared</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>Close Comparison</source>
        <translation>关闭比较</translation>
    </message>
    <message>
        <source>Two results side by side</source>
        <translation>两个结果并列</translation>
    </message>
    <message>
        <source>What</source>
        <translation>项目</translation>
    </message>
    <message>
        <source>First</source>
        <translation>第一个</translation>
    </message>
    <message>
        <source>Second</source>
        <translation>第二个</translation>
    </message>
    <message>
        <source>Difference</source>
        <translation>差异</translation>
    </message>
</context>
<context>
    <name>Comparison</name>
    <message>
        <source>Time for one request</source>
        <translation>一次请求的时间</translation>
    </message>
    <message>
        <source>{name}: decode</source>
        <translation>{name}：生成</translation>
    </message>
    <message>
        <source>{name}: time</source>
        <translation>{name}：时间</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Write a message. Enter sends it.</source>
        <translation>输入消息，按 Enter 发送。</translation>
    </message>
    <message>
        <source>Editing an earlier message: sending it begins another branch.</source>
        <translation>正在编辑之前的消息：发送后将开始另一个分支。</translation>
    </message>
    <message>
        <source>Keep as It Was</source>
        <translation>保持原样</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Attach…</source>
        <translation>附加…</translation>
    </message>
    <message>
        <source>{name}: {about}{n} tokens</source>
        <translation>{name}：{about}{n} 个 token</translation>
    </message>
    <message>
        <source>Remove {what}</source>
        <translation>移除 {what}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>pasted text</source>
        <translation>粘贴的文本</translation>
    </message>
</context>
<context>
    <name>Constraints</name>
    <message>
        <source>Context length</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>&amp;Context length</source>
        <translation>上下文长度(&amp;C)</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>&amp;Slowest acceptable decode</source>
        <translation>可接受的最低生成速度(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Time to spend</source>
        <translation>可用时间(&amp;T)</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Memory to &amp;leave free</source>
        <translation>保留的空闲内存(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Allow an 8-bit KV cache (q8_0) where it wins clearly</source>
        <translation>在明显更优时允许 8 位 KV 缓存（q8_0）(&amp;A)</translation>
    </message>
    <message>
        <source>Context length, tokens</source>
        <translation>上下文长度（token）</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} 个 token</translation>
    </message>
</context>
<context>
    <name>ContextPlot</name>
    <message>
        <source>Speed as the context fills</source>
        <translation>上下文填充时的速度</translation>
    </message>
    <message>
        <source>Tokens in context</source>
        <translation>上下文中的 token 数</translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation>生成 tok/s</translation>
    </message>
    <message>
        <source>The floor is {floor}.</source>
        <translation>下限为 {floor}。</translation>
    </message>
    <message>
        <source>Decode, tok/s</source>
        <translation>生成，tok/s</translation>
    </message>
    <message>
        <source>Not measured in this search.</source>
        <translation>本次搜索未测量。</translation>
    </message>
    <message>
        <source>Floor</source>
        <translation>下限</translation>
    </message>
    <message>
        <source>Decode goes from {first} at {shallow} tokens to {last} at {deep} tokens.</source>
        <translation>生成速度从 {shallow} 个 token 时的 {first} 变为 {deep} 个 token 时的 {last}。</translation>
    </message>
</context>
<context>
    <name>DashboardPage</name>
    <message>
        <source>Dashboard</source>
        <translation>仪表盘</translation>
    </message>
    <message>
        <source>Time shown</source>
        <translation>显示的时间范围</translation>
    </message>
    <message>
        <source>Last minute</source>
        <translation>最近 1 分钟</translation>
    </message>
    <message>
        <source>Last 5 minutes</source>
        <translation>最近 5 分钟</translation>
    </message>
    <message>
        <source>Last 30 minutes</source>
        <translation>最近 30 分钟</translation>
    </message>
    <message>
        <source>Show readings as table</source>
        <translation>以表格显示读数</translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>Looking at your machine…</source>
        <translation>正在检查您的机器…</translation>
    </message>
    <message>
        <source>Probes read the drivers, and the engine lists its devices.</source>
        <translation>探针读取驱动信息，引擎列出其设备。</translation>
    </message>
    <message>
        <source>Pause the curves</source>
        <translation>暂停曲线</translation>
    </message>
    <message>
        <source>Show programs that use a GPU</source>
        <translation>显示使用 GPU 的程序</translation>
    </message>
    <message>
        <source>Export readings as CSV…</source>
        <translation>将读数导出为 CSV…</translation>
    </message>
    <message>
        <source>No GPU found: neither a driver nor the engine reports one. Everything works on the CPU, only slower.</source>
        <translation>未找到 GPU：驱动和引擎都没有报告 GPU。一切仍可在 CPU 上运行，只是较慢。</translation>
    </message>
    <message>
        <source>This machine could not be read.</source>
        <translation>无法读取这台机器的信息。</translation>
    </message>
    <message>
        <source>Written: {path}</source>
        <translation>已写入：{path}</translation>
    </message>
    <message>
        <source>The settings file was damaged and is now kept as {path}. Defaults count.</source>
        <translation>设置文件已损坏，现保留为 {path}。使用默认设置。</translation>
    </message>
    <message>
        <source>Go on with the curves</source>
        <translation>继续曲线</translation>
    </message>
    <message>
        <source>Export readings</source>
        <translation>导出读数</translation>
    </message>
    <message>
        <source>CSV files (*.csv)</source>
        <translation>CSV 文件 (*.csv)</translation>
    </message>
</context>
<context>
    <name>DeviceCard</name>
    <message>
        <source>Readings of {name}</source>
        <translation>{name} 的读数</translation>
    </message>
    <message>
        <source>Quantity</source>
        <translation>量</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>Lowest</source>
        <translation>最低</translation>
    </message>
    <message>
        <source>Mean</source>
        <translation>平均</translation>
    </message>
    <message>
        <source>Highest</source>
        <translation>最高</translation>
    </message>
</context>
<context>
    <name>Drawer</name>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>formula</source>
        <translation>公式</translation>
    </message>
</context>
<context>
    <name>EngineCard</name>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>The engine is being looked at…</source>
        <translation>正在查看引擎…</translation>
    </message>
    <message>
        <source>Measure Them Again</source>
        <translation>重新测量</translation>
    </message>
    <message>
        <source>Use This RigTune&apos;s Engine…</source>
        <translation>使用此 RigTune 的引擎…</translation>
    </message>
    <message>
        <source>Go Back to the Earlier Engine…</source>
        <translation>退回到先前的引擎…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Searches and chats run on this RigTune&apos;s engine: {build}.</source>
        <translation>搜索和聊天使用此 RigTune 的引擎：{build}。</translation>
    </message>
    <message>
        <source>Searches and chats run on the engine from before the last upgrade: {build}.</source>
        <translation>搜索和聊天使用上次升级前的引擎：{build}。</translation>
    </message>
    <message>
        <source>Searches and chats run on llama.cpp libraries of your own: {build}.</source>
        <translation>搜索和聊天使用您自己的 llama.cpp 库：{build}。</translation>
    </message>
    <message>
        <source>not asked yet, because a GPU sleeps</source>
        <translation>尚未询问，因为有 GPU 在休眠</translation>
    </message>
    <message>
        <source>The engine does not start: {why}</source>
        <translation>引擎无法启动：{why}</translation>
    </message>
    <message>
        <source>The engine from before the last upgrade is kept, to go back to.</source>
        <translation>上次升级前的引擎仍保留着，可以退回。</translation>
    </message>
    <message>
        <source>No earlier engine is kept here; the next upgrade keeps this one.</source>
        <translation>这里没有保留先前的引擎；下次升级会保留现在这个。</translation>
    </message>
    <message numerus="yes">
        <source>%n stored profile(s) were measured by another engine: {names}. Their settings are used as before; their speeds may not hold until they are measured again.</source>
        <translation>
            <numerusform>有 %n 个保存的配置由另一个引擎测得：{names}。其设置照常使用；在重新测量之前，其速度可能不再成立。</numerusform>
        </translation>
    </message>
    <message>
        <source>Change the engine</source>
        <translation>更换引擎</translation>
    </message>
    <message>
        <source>Run searches and chats on the engine from before the last upgrade?</source>
        <translation>改用上次升级前的引擎进行搜索和聊天？</translation>
    </message>
    <message>
        <source>Run searches and chats on this RigTune&apos;s engine again?</source>
        <translation>重新使用此 RigTune 的引擎进行搜索和聊天？</translation>
    </message>
    <message>
        <source>Nothing is deleted, and you can change back here at any time. A model that is loaded for chat is unloaded. Profiles that the other engine measured stay as they are, but their speeds may not hold: measure them again under Results.</source>
        <translation>不会删除任何内容，随时可以在这里换回来。已为聊天加载的模型会被卸载。由另一个引擎测得的配置保持不变，但其速度可能不再成立：请在“结果”中重新测量。</translation>
    </message>
    <message>
        <source>Change the Engine</source>
        <translation>更换引擎</translation>
    </message>
    <message>
        <source>Leave It</source>
        <translation>不更换</translation>
    </message>
    <message>
        <source>A search is running: stop it first.</source>
        <translation>正在搜索：请先停止。</translation>
    </message>
    <message>
        <source>The other engine is in use now.</source>
        <translation>现在使用另一个引擎。</translation>
    </message>
    <message>
        <source>Measuring again…</source>
        <translation>正在重新测量…</translation>
    </message>
    <message>
        <source>Measuring again: {phase}</source>
        <translation>正在重新测量：{phase}</translation>
    </message>
</context>
<context>
    <name>EngineCheck</name>
    <message>
        <source>{name}: faster than before ({speeds}).</source>
        <translation>{name}：比以前快（{speeds}）。</translation>
    </message>
    <message>
        <source>{name}: as fast as before ({speeds}).</source>
        <translation>{name}：与以前一样快（{speeds}）。</translation>
    </message>
    <message>
        <source>{name}: not told apart from before by these measurements ({speeds}).</source>
        <translation>{name}：这些测量无法与以前区分开（{speeds}）。</translation>
    </message>
    <message>
        <source>{name}: slower than before ({speeds}). You can go back to the earlier engine.</source>
        <translation>{name}：比以前慢（{speeds}）。可以退回到先前的引擎。</translation>
    </message>
    <message>
        <source>{name}: does not run on this engine. {why}</source>
        <translation>{name}：在此引擎上无法运行。{why}</translation>
    </message>
    <message>
        <source>{name}: measured ({speeds}); there was nothing to compare with.</source>
        <translation>{name}：已测量（{speeds}）；没有可比较的结果。</translation>
    </message>
    <message>
        <source>decode was {before}, now {now} tok/s: {percent}&#xa0;%</source>
        <translation>生成速度原为 {before}，现为 {now} tok/s：{percent}&#xa0;%</translation>
    </message>
</context>
<context>
    <name>EstimatePanel</name>
    <message>
        <source>Estimate</source>
        <translation>估计</translation>
    </message>
    <message>
        <source>Reading the model…</source>
        <translation>正在读取模型…</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>At most {n} of {all} layers fit on the GPU at this context.</source>
        <translation>在此上下文下，GPU 最多可容纳 {all} 层中的 {n} 层。</translation>
    </message>
    <message>
        <source>The longest context that fits is {n} tokens.</source>
        <translation>可容纳的最长上下文为 {n} 个 token。</translation>
    </message>
    <message>
        <source>Estimated, ±&#xa0;{n}&#xa0;%.</source>
        <translation>估计值，±&#xa0;{n}&#xa0;%。</translation>
    </message>
</context>
<context>
    <name>Fold</name>
    <message>
        <source>{n} words</source>
        <translation>{n} 个词</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>正在思考…</translation>
    </message>
    <message>
        <source>Reasoning</source>
        <translation>思考过程</translation>
    </message>
</context>
<context>
    <name>Folders</name>
    <message>
        <source>Folders with models</source>
        <translation>存放模型的文件夹</translation>
    </message>
    <message>
        <source>Add Folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Folder with models</source>
        <translation>存放模型的文件夹</translation>
    </message>
</context>
<context>
    <name>Gauge</name>
    <message>
        <source>Context in use</source>
        <translation>已用上下文</translation>
    </message>
</context>
<context>
    <name>GoalStep</name>
    <message>
        <source>What is it for?</source>
        <translation>用途是什么？</translation>
    </message>
    <message>
        <source>Bounds</source>
        <translation>限制</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>Make a Plan</source>
        <translation>制定计划</translation>
    </message>
    <message numerus="yes">
        <source>%n block(s)</source>
        <translation>
            <numerusform>%n 个块</numerusform>
        </translation>
    </message>
    <message>
        <source>{used} of {all} experts</source>
        <translation>{all} 个专家中使用 {used} 个</translation>
    </message>
    <message>
        <source>no chat template</source>
        <translation>无聊天模板</translation>
    </message>
    <message>
        <source>an adapter that belongs to another model</source>
        <translation>属于另一个模型的适配器</translation>
    </message>
    <message>
        <source>the image part of another model</source>
        <translation>另一个模型的图像部分</translation>
    </message>
    <message>
        <source>a vocabulary without weights</source>
        <translation>没有权重的词表</translation>
    </message>
    <message>
        <source>a model that turns text into numbers</source>
        <translation>将文字转换为向量的模型</translation>
    </message>
    <message>
        <source>This file is {what}: it writes no text, so there is nothing to tune.</source>
        <translation>此文件是{what}：它不生成文字，因此没有可调优的内容。</translation>
    </message>
</context>
<context>
    <name>GpuCard</name>
    <message>
        <source>The engine does not list this GPU, so it will not be used.</source>
        <translation>引擎没有列出该 GPU，因此不会使用它。</translation>
    </message>
    <message>
        <source>asleep</source>
        <translation>休眠</translation>
    </message>
    <message>
        <source>It sleeps to save power. RigTune does not wake it for a graph.</source>
        <translation>它正在休眠以省电。RigTune 不会为绘图而唤醒它。</translation>
    </message>
    <message>
        <source>seen by the engine only</source>
        <translation>仅引擎可见</translation>
    </message>
    <message>
        <source>waiting for readings</source>
        <translation>等待读数</translation>
    </message>
    <message>
        <source>The engine uses this GPU, but no driver tells its readings.</source>
        <translation>引擎使用此 GPU，但没有驱动提供它的读数。</translation>
    </message>
    <message>
        <source>Several GPUs here are called alike: whose readings are this one&apos;s is not known.</source>
        <translation>这里有多个同名 GPU：无法知道哪些读数属于它。</translation>
    </message>
    <message>
        <source>Several parts of a split card are alike: whose readings are this one&apos;s is not known.</source>
        <translation>拆分的显卡有多个相同的部分：无法知道哪些读数属于它。</translation>
    </message>
    <message>
        <source>throttled: {why}</source>
        <translation>降频：{why}</translation>
    </message>
    <message>
        <source>not answering</source>
        <translation>无响应</translation>
    </message>
    <message>
        <source>awake</source>
        <translation>唤醒</translation>
    </message>
    <message>
        <source>working</source>
        <translation>工作中</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>link now {gen} x{width}</source>
        <translation>当前链路 {gen} x{width}</translation>
    </message>
    <message>
        <source>{n} rpm</source>
        <translation>{n} 转/分</translation>
    </message>
    <message>
        <source>fan {speed}</source>
        <translation>风扇 {speed}</translation>
    </message>
    <message>
        <source>discrete</source>
        <translation>独立显卡</translation>
    </message>
    <message>
        <source>integrated</source>
        <translation>集成显卡</translation>
    </message>
    <message>
        <source>software device</source>
        <translation>软件设备</translation>
    </message>
    <message>
        <source>remote device</source>
        <translation>远程设备</translation>
    </message>
    <message>
        <source>driver {name}</source>
        <translation>驱动 {name}</translation>
    </message>
    <message>
        <source>PCIe {gen} x{width}</source>
        <translation>PCIe {gen} x{width}</translation>
    </message>
    <message>
        <source>drives the display</source>
        <translation>驱动显示器</translation>
    </message>
    <message>
        <source>engine: {names}</source>
        <translation>引擎：{names}</translation>
    </message>
</context>
<context>
    <name>Head</name>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Earlier version</source>
        <translation>较早的版本</translation>
    </message>
    <message>
        <source>Later version</source>
        <translation>较晚的版本</translation>
    </message>
    <message>
        <source>Copy this message</source>
        <translation>复制此消息</translation>
    </message>
    <message>
        <source>More for this message</source>
        <translation>此消息的更多操作</translation>
    </message>
    <message>
        <source>{n} tokens, {speed}</source>
        <translation>{n} 个 token，{speed}</translation>
    </message>
    <message>
        <source>Version {n} of {all}</source>
        <translation>第 {n} 个版本，共 {all} 个</translation>
    </message>
    <message>
        <source>Edit and ask again…</source>
        <translation>编辑并重新提问…</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Go on with this answer</source>
        <translation>继续此回答</translation>
    </message>
    <message>
        <source>Delete from here on…</source>
        <translation>从此处起删除…</translation>
    </message>
</context>
<context>
    <name>History</name>
    <message>
        <source>Search all conversations</source>
        <translation>搜索所有对话</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Rename this conversation…</source>
        <translation>重命名此对话…</translation>
    </message>
    <message>
        <source>Export this conversation…</source>
        <translation>导出此对话…</translation>
    </message>
    <message>
        <source>Delete this conversation…</source>
        <translation>删除此对话…</translation>
    </message>
    <message>
        <source>Nothing found.</source>
        <translation>没有找到。</translation>
    </message>
    <message>
        <source>No conversation is kept yet.</source>
        <translation>还没有保存的对话。</translation>
    </message>
    <message>
        <source>Rename conversation</source>
        <translation>重命名对话</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>标题</translation>
    </message>
    <message>
        <source>Delete “{title}”?</source>
        <translation>删除“{title}”？</translation>
    </message>
</context>
<context>
    <name>HostCard</name>
    <message>
        <source>Processor</source>
        <translation>处理器</translation>
    </message>
    <message>
        <source>on battery: slower</source>
        <translation>使用电池：较慢</translation>
    </message>
    <message>
        <source>{n} cores</source>
        <translation>{n} 核</translation>
    </message>
    <message>
        <source>1 core</source>
        <translation>1 核</translation>
    </message>
    <message>
        <source>{n} threads</source>
        <translation>{n} 线程</translation>
    </message>
    <message>
        <source>1 thread</source>
        <translation>1 线程</translation>
    </message>
    <message>
        <source>{size} RAM</source>
        <translation>{size} 内存</translation>
    </message>
</context>
<context>
    <name>IntroPage</name>
    <message>
        <source>Welcome to RigTune</source>
        <translation>欢迎使用 RigTune</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>The best settings for your GPU, measured</source>
        <translation>实测得出的 GPU 最佳设置</translation>
    </message>
    <message>
        <source>A few short measurements find the llama.cpp settings that are fastest for what you want to do, and RigTune shows why.</source>
        <translation>几次简短的测量即可找到最适合您用途的 llama.cpp 设置，RigTune 还会说明原因。</translation>
    </message>
    <message>
        <source>Chat on them at once, or take them along to llama-server, Ollama, LM Studio and others.</source>
        <translation>立即用这些设置聊天，或将其用于 llama-server、Ollama、LM Studio 等程序。</translation>
    </message>
    <message>
        <source>Everything stays on this machine: no account, no network, and no setting of your system is changed.</source>
        <translation>一切都留在这台机器上：无需账户，无需网络，也不更改系统设置。</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>语言(&amp;L)</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>&amp;Colours</source>
        <translation>颜色(&amp;C)</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Your machine</source>
        <translation>您的机器</translation>
    </message>
    <message>
        <source>Looking at your machine…</source>
        <translation>正在检查您的机器…</translation>
    </message>
    <message>
        <source>The dashboard shows live what each device does; Advice says what slows it down.</source>
        <translation>仪表盘实时显示各设备的工作情况；建议页说明哪些因素使其变慢。</translation>
    </message>
    <message>
        <source>Where to begin</source>
        <translation>从哪里开始</translation>
    </message>
    <message>
        <source>One click on the next page tunes a small demo model. Or choose a model of yours: those of LM Studio, Ollama, Hugging Face, Jan, GPT4All and llama.cpp are found where they lie, and any .gguf file can be dropped there.</source>
        <translation>在下一页点击一次即可为一个小型演示模型寻找设置。也可以选择您自己的模型：LM Studio、Ollama、Hugging Face、Jan、GPT4All 和 llama.cpp 的模型会在原处找到，任何 .gguf 文件也可以拖放到那里。</translation>
    </message>
    <message>
        <source>No GPU was found. Everything works on the CPU, only slower.</source>
        <translation>未找到 GPU。一切仍可在 CPU 上运行，只是较慢。</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>处理器</translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>{n} of {count}</source>
        <translation>第 {n} 页，共 {count} 页</translation>
    </message>
</context>
<context>
    <name>Language</name>
    <message>
        <source>en</source>
        <comment>code of this language: en or zh</comment>
        <translation>zh</translation>
    </message>
</context>
<context>
    <name>LiveStrip</name>
    <message>
        <source>{seconds} s ago: {value}</source>
        <translation>{seconds} 秒前：{value}</translation>
    </message>
    <message>
        <source>{name}: no readings</source>
        <translation>{name}：没有读数</translation>
    </message>
    <message>
        <source>{name}: now {now}, between {low} and {high}</source>
        <translation>{name}：现在 {now}，介于 {low} 与 {high} 之间</translation>
    </message>
    <message>
        <source>slowed down for {n} s of it</source>
        <translation>其中 {n} 秒处于降频状态</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Dashboard</source>
        <translation>仪表盘</translation>
    </message>
    <message>
        <source>Find best settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Advice</source>
        <translation>建议</translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory needed</source>
        <translation>所需内存</translation>
    </message>
    <message>
        <source>{need} of {free} free</source>
        <translation>需要 {need}，空闲 {free}</translation>
    </message>
</context>
<context>
    <name>MemorySplit</name>
    <message>
        <source>Memory: {used} used, {free} free of {total}</source>
        <translation>显存：已用 {used}，空闲 {free}，共 {total}</translation>
    </message>
    <message>
        <source>others</source>
        <translation>其他程序</translation>
    </message>
</context>
<context>
    <name>Menus</name>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Open Model…</source>
        <translation>打开模型(&amp;O)…</translation>
    </message>
    <message>
        <source>&amp;New Chat</source>
        <translation>新聊天(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>Look: as the &amp;System</source>
        <translation>外观：跟随系统(&amp;S)</translation>
    </message>
    <message>
        <source>Look: &amp;Light</source>
        <translation>外观：浅色(&amp;L)</translation>
    </message>
    <message>
        <source>Look: &amp;Dark</source>
        <translation>外观：深色(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Keyboard Shortcuts</source>
        <translation>键盘快捷键(&amp;K)</translation>
    </message>
    <message>
        <source>&amp;Introduction</source>
        <translation>入门介绍(&amp;I)</translation>
    </message>
    <message>
        <source>&amp;About RigTune</source>
        <translation>关于 RigTune(&amp;A)</translation>
    </message>
    <message>
        <source>Chat: send (Shift+Enter: new line)</source>
        <translation>聊天：发送（Shift+Enter：换行）</translation>
    </message>
    <message>
        <source>Stop what runs on this page</source>
        <translation>停止此页面上正在运行的任务</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>&lt;b&gt;RigTune {version}&lt;/b&gt;&lt;br&gt;Finds the best llama.cpp settings for the GPU you own and shows why.&lt;br&gt;Apache License 2.0. Works offline; nothing leaves this machine.</source>
        <translation>&lt;b&gt;RigTune {version}&lt;/b&gt;&lt;br&gt;为您的 GPU 找到最佳的 llama.cpp 设置，并说明原因。&lt;br&gt;Apache 许可证 2.0。离线工作；没有任何内容离开这台机器。</translation>
    </message>
    <message>
        <source>About RigTune</source>
        <translation>关于 RigTune</translation>
    </message>
</context>
<context>
    <name>Meter</name>
    <message>
        <source>Reading the prompt…</source>
        <translation>正在读取提示…</translation>
    </message>
    <message>
        <source>prompt {n} tokens, {reused} re-used</source>
        <translation>提示 {n} 个 token，复用 {reused} 个</translation>
    </message>
    <message>
        <source>Reading the prompt: {done} of {all} tokens</source>
        <translation>正在读取提示：{done} / {all} 个 token</translation>
    </message>
    <message>
        <source>now {now}, mean {mean}</source>
        <translation>现在 {now}，平均 {mean}</translation>
    </message>
    <message>
        <source>first token {ttft}</source>
        <translation>首个 token {ttft}</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} 个 token</translation>
    </message>
    <message>
        <source>mean {mean}</source>
        <translation>平均 {mean}</translation>
    </message>
    <message>
        <source>prompt {n} tokens, {reused} re-used, {speed}</source>
        <translation>提示 {n} 个 token，复用 {reused} 个，{speed}</translation>
    </message>
    <message>
        <source>Why slow: {causes}</source>
        <translation>变慢原因：{causes}</translation>
    </message>
    <message>
        <source>system {system}, you {user}, model {model}, markers {markers}</source>
        <translation>系统 {system}，您 {user}，模型 {model}，标记 {markers}</translation>
    </message>
    <message>
        <source>{used} of {all} tokens</source>
        <translation>{used} / {all} 个 token</translation>
    </message>
</context>
<context>
    <name>Milliseconds</name>
    <message>
        <source>weights on the GPU, and the rest</source>
        <translation>GPU 上的权重及其余部分</translation>
    </message>
    <message>
        <source>weights on the CPU, and the rest</source>
        <translation>CPU 上的权重及其余部分</translation>
    </message>
    <message>
        <source>layers left in RAM</source>
        <translation>留在内存中的层</translation>
    </message>
    <message>
        <source>reading the context</source>
        <translation>读取上下文</translation>
    </message>
    <message>
        <source>Where the {n} ms of a token go</source>
        <translation>每个 token 的 {n} 毫秒用在哪里</translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Model and settings</source>
        <translation>模型和设置</translation>
    </message>
    <message>
        <source>Demo model</source>
        <translation>演示模型</translation>
    </message>
    <message>
        <source>{name}, default settings</source>
        <translation>{name}，默认设置</translation>
    </message>
    <message>
        <source>{name}, tuned</source>
        <translation>{name}，已调优</translation>
    </message>
</context>
<context>
    <name>ModelStep</name>
    <message>
        <source>Models on this machine</source>
        <translation>这台机器上的模型</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Found in</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation>在这台机器上</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>One click</source>
        <translation>一键完成</translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>Or choose a model</source>
        <translation>或选择一个模型</translation>
    </message>
    <message>
        <source>Search Again</source>
        <translation>重新查找</translation>
    </message>
    <message>
        <source>Recent</source>
        <translation>最近使用</translation>
    </message>
    <message>
        <source>Open File…</source>
        <translation>打开文件…</translation>
    </message>
    <message>
        <source>A .gguf file can also be dropped here. Files are read where they lie.</source>
        <translation>也可以将 .gguf 文件拖放到此处。文件在原处读取。</translation>
    </message>
    <message>
        <source>Choose Goal</source>
        <translation>选择目标</translation>
    </message>
    <message>
        <source>the demo model</source>
        <translation>演示模型</translation>
    </message>
    <message>
        <source>Tunes {model} for chat. Takes minutes, asks nothing.</source>
        <translation>为聊天用途调优{model}。需要几分钟，无需回答任何问题。</translation>
    </message>
    <message>
        <source>No model was found yet: open a .gguf file, or drop one here.</source>
        <translation>尚未找到模型：请打开 .gguf 文件，或拖放到这里。</translation>
    </message>
    <message>
        <source>Demo model</source>
        <translation>演示模型</translation>
    </message>
    <message>
        <source>own folder</source>
        <translation>自己的文件夹</translation>
    </message>
    <message>
        <source>Demo: Gemma 3 270M</source>
        <translation>演示：Gemma 3 270M</translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation>打开模型</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf);;All files (*)</source>
        <translation>GGUF 模型 (*.gguf);;所有文件 (*)</translation>
    </message>
</context>
<context>
    <name>PlanStep</name>
    <message>
        <source>Making the plan…</source>
        <translation>正在制定计划…</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Goal</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Budget</source>
        <translation>预算</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>GPU layers</source>
        <translation>GPU 层数</translation>
    </message>
    <message>
        <source>Stages of the plan</source>
        <translation>计划的各阶段</translation>
    </message>
    <message>
        <source>Stage</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>Loads of the model</source>
        <translation>模型加载次数</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>Nothing is loaded yet. Stop at any time and keep the results.</source>
        <translation>尚未加载任何内容。您可以随时停止并保留结果。</translation>
    </message>
    <message>
        <source>Start Measuring</source>
        <translation>开始测量</translation>
    </message>
    <message>
        <source>About {low} to {high}</source>
        <translation>约 {low} 至 {high}</translation>
    </message>
    <message>
        <source>{low} to {high}</source>
        <translation>{low} 至 {high}</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} 个 token</translation>
    </message>
    <message>
        <source>none: this search runs on the CPU</source>
        <translation>无：此搜索在 CPU 上运行</translation>
    </message>
    <message>
        <source>up to {n} of {all} fit</source>
        <translation>{all} 层中最多可容纳 {n} 层</translation>
    </message>
    <message>
        <source>Speed on the CPU</source>
        <translation>在 CPU 上的速度</translation>
    </message>
    <message>
        <source>none: on a loaded model</source>
        <translation>无：使用已加载的模型</translation>
    </message>
</context>
<context>
    <name>PlotTwin</name>
    <message>
        <source>Table</source>
        <translation>表格</translation>
    </message>
    <message>
        <source>Show as table: {title}</source>
        <translation>以表格显示：{title}</translation>
    </message>
</context>
<context>
    <name>PowerLine</name>
    <message>
        <source>Everything was put back; nothing is turned until you resume.</source>
        <translation>一切都已恢复；在您继续之前不会再作调整。</translation>
    </message>
    <message>
        <source>No model is loaded on a GPU, so there is nothing to govern now.</source>
        <translation>GPU 上没有加载模型，因此现在没有可调节的内容。</translation>
    </message>
    <message>
        <source>Full speed</source>
        <translation>全速</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>均衡</translation>
    </message>
    <message>
        <source>Quiet</source>
        <translation>安静</translation>
    </message>
    <message>
        <source>{name}: no reading yet.</source>
        <translation>{name}：尚无读数。</translation>
    </message>
    <message>
        <source>{name}: {temp} of {target} °C, limit {limit} W, at work {duty} %, {mode}.</source>
        <translation>{name}：{temp} / {target} °C，上限 {limit} W，工作占比 {duty} %，{mode}。</translation>
    </message>
    <message>
        <source>{joules} J per token, {wh} Wh in this conversation</source>
        <translation>每个 token {joules} J，本次对话 {wh} Wh</translation>
    </message>
    <message>
        <source>{energy}; {cost} per 1,000 tokens.</source>
        <translation>{energy}；每 1,000 个 token {cost}。</translation>
    </message>
</context>
<context>
    <name>PowerPanel</name>
    <message>
        <source>Heat and power</source>
        <translation>温度与功耗</translation>
    </message>
    <message>
        <source>How warm devices may get</source>
        <translation>设备可达到的温度</translation>
    </message>
    <message>
        <source>Put Everything Back</source>
        <translation>全部恢复</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>May set power limits (the system asks for a password)</source>
        <translation>可以设置功率上限（系统会要求输入密码）</translation>
    </message>
    <message>
        <source>Target temperature</source>
        <translation>目标温度</translation>
    </message>
    <message>
        <source>Target </source>
        <translation>目标 </translation>
    </message>
    <message>
        <source>Target by mode</source>
        <translation>按模式的目标</translation>
    </message>
    <message>
        <source>Price per kWh</source>
        <translation>每千瓦时价格</translation>
    </message>
    <message>
        <source> per kWh</source>
        <translation> / 千瓦时</translation>
    </message>
    <message>
        <source>Price </source>
        <translation>价格 </translation>
    </message>
    <message>
        <source>No price</source>
        <translation>无价格</translation>
    </message>
    <message>
        <source>What was changed</source>
        <translation>更改记录</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>What</source>
        <translation>项目</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>When</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Asked for</source>
        <translation>请求值</translation>
    </message>
    <message>
        <source>Before</source>
        <translation>之前</translation>
    </message>
    <message>
        <source>After</source>
        <translation>之后</translation>
    </message>
    <message>
        <source>An earlier run ended without putting the power limit back ({names}). Putting it back needs an administrator&apos;s password; a restart does it, too.</source>
        <translation>之前的一次运行结束时没有恢复功率上限（{names}）。恢复需要管理员密码；重新启动也可恢复。</translation>
    </message>
    <message>
        <source>Put Back Now</source>
        <translation>立即恢复</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Waiting for the system&apos;s password prompt…</source>
        <translation>正在等待系统的密码提示…</translation>
    </message>
    <message>
        <source>The power limit is as it was found.</source>
        <translation>功率上限与原先相同。</translation>
    </message>
    <message>
        <source>applied</source>
        <translation>已生效</translation>
    </message>
    <message>
        <source>restored</source>
        <translation>已恢复</translation>
    </message>
    <message>
        <source>unchanged</source>
        <translation>未变</translation>
    </message>
    <message>
        <source>left as it was</source>
        <translation>保持原样</translation>
    </message>
    <message>
        <source>pauses</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>power limit</source>
        <translation>功率上限</translation>
    </message>
    <message>
        <source>highest clock</source>
        <translation>最高频率</translation>
    </message>
    <message>
        <source>put back</source>
        <translation>已恢复</translation>
    </message>
</context>
<context>
    <name>ProcessTable</name>
    <message>
        <source>Programs on {device}</source>
        <translation>{device} 上的程序</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>PID</source>
        <translation>PID</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Shared memory</source>
        <translation>共享内存</translation>
    </message>
    <message>
        <source>GPU time</source>
        <translation>GPU 占用</translation>
    </message>
</context>
<context>
    <name>Reasons</name>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>No reasons were recorded.</source>
        <translation>没有记录原因。</translation>
    </message>
</context>
<context>
    <name>Recheck</name>
    <message>
        <source>the engine build</source>
        <translation>引擎版本</translation>
    </message>
    <message>
        <source>the GPU driver</source>
        <translation>GPU 驱动</translation>
    </message>
    <message>
        <source>Changed since this search: {what}. Its speeds may not hold.</source>
        <translation>此搜索之后有变化：{what}。其速度可能已不适用。</translation>
    </message>
    <message>
        <source>Was {before} tok/s; now it did not run: {why}.</source>
        <translation>原为 {before} tok/s；现在无法运行：{why}。</translation>
    </message>
    <message>
        <source>outside noise</source>
        <translation>超出误差</translation>
    </message>
    <message>
        <source>within noise</source>
        <translation>在误差范围内</translation>
    </message>
    <message>
        <source>Was {before}, now {now} tok/s: {percent}&#xa0;%, {noise}.</source>
        <translation>原为 {before}，现为 {now} tok/s：{percent}&#xa0;%，{noise}。</translation>
    </message>
</context>
<context>
    <name>Rechecker</name>
    <message>
        <source>Check Again</source>
        <translation>重新测量</translation>
    </message>
    <message>
        <source>Measuring again…</source>
        <translation>正在重新测量…</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Measuring again: {phase}</source>
        <translation>正在重新测量：{phase}</translation>
    </message>
    <message>
        <source>Stopped. The stored result is as it was.</source>
        <translation>已停止。保存的结果没有变化。</translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message>
        <source>Recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>设置项</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>All settings</source>
        <translation>全部设置</translation>
    </message>
    <message>
        <source>Search {status}: trials {n}, loads {loads}, {time}</source>
        <translation>搜索{status}：试验 {n} 次，加载 {loads} 次，{time}</translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation>生成 tok/s</translation>
    </message>
    <message>
        <source>Prefill tok/s</source>
        <translation>预填充 tok/s</translation>
    </message>
    <message>
        <source>Request</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>Tokens in context</source>
        <translation>上下文中的 token 数</translation>
    </message>
    <message>
        <source>Speed as the context fills</source>
        <translation>上下文填充时的速度</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Depth</source>
        <translation>深度</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Trials</source>
        <translation>试验</translation>
    </message>
</context>
<context>
    <name>Result</name>
    <message>
        <source>Recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>Knee: saves memory</source>
        <translation>拐点：节省内存</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s own fit</source>
        <translation>llama.cpp 自动适配</translation>
    </message>
    <message>
        <source>CPU only</source>
        <translation>仅 CPU</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>none: CPU only</source>
        <translation>无：仅用 CPU</translation>
    </message>
    <message>
        <source>physical cores</source>
        <translation>物理核心数</translation>
    </message>
    <message>
        <source>as in decode</source>
        <translation>与生成相同</translation>
    </message>
    <message>
        <source>by free memory</source>
        <translation>按空闲内存</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>whole layers one after the other</source>
        <translation>整层依次分配</translation>
    </message>
    <message>
        <source>only the first device</source>
        <translation>仅第一个设备</translation>
    </message>
    <message>
        <source>matrices by rows</source>
        <translation>按行划分矩阵</translation>
    </message>
    <message>
        <source>every layer on all devices at once</source>
        <translation>每一层由所有设备同时计算</translation>
    </message>
    <message>
        <source>mapped from the file</source>
        <translation>从文件映射</translation>
    </message>
    <message>
        <source>copied to RAM</source>
        <translation>复制到内存</translation>
    </message>
    <message>
        <source>{words} ({own})</source>
        <translation>{words}（{own}）</translation>
    </message>
    <message>
        <source>{missing} (llama.cpp does not count it in this split mode)</source>
        <translation>{missing}（在此拆分模式下 llama.cpp 不统计）</translation>
    </message>
    <message>
        <source>RAM only</source>
        <translation>仅内存</translation>
    </message>
    <message>
        <source>As fast as llama.cpp&apos;s own automatic fit.</source>
        <translation>与 llama.cpp 自动适配一样快。</translation>
    </message>
    <message>
        <source>{gain}&#xa0;% faster than llama.cpp&apos;s own automatic fit.</source>
        <translation>比 llama.cpp 自动适配快 {gain}&#xa0;%。</translation>
    </message>
    <message>
        <source>RigTune: {model}, search {status}, trials {n}, loads {loads}</source>
        <translation>RigTune：{model}，搜索{status}，试验 {n} 次，加载 {loads} 次</translation>
    </message>
    <message>
        <source>Speeds {depth}:</source>
        <translation>速度（{depth}）：</translation>
    </message>
    <message>
        <source>{name}: {decode} decode, {prefill} tok/s prefill, {time} per request, {memory}; {settings}</source>
        <translation>{name}：生成 {decode}，预填充 {prefill} tok/s，每次请求 {time}，{memory}；{settings}</translation>
    </message>
</context>
<context>
    <name>ResultView</name>
    <message>
        <source>Recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>Decode</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>Request</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>All settings</source>
        <translation>全部设置</translation>
    </message>
    <message>
        <source>Recommended settings</source>
        <translation>推荐的设置</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>设置项</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>Copy as Text</source>
        <translation>复制为文本</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Report…</source>
        <translation>报告…</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>应用</translation>
    </message>
    <message>
        <source>Chat and server use these settings for this model</source>
        <translation>聊天和服务器对此模型使用这些设置</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Chat with these settings</source>
        <translation>用这些设置聊天</translation>
    </message>
    <message>
        <source>Save a report to print</source>
        <translation>保存可打印的报告</translation>
    </message>
    <message>
        <source>PDF (*.pdf);;Web page (*.html)</source>
        <translation>PDF (*.pdf);;网页 (*.html)</translation>
    </message>
    <message>
        <source>Written: {path}</source>
        <translation>已写入：{path}</translation>
    </message>
    <message>
        <source>Chat and server use these settings for {model} from now on.</source>
        <translation>从现在起，聊天和服务器对 {model} 使用这些设置。</translation>
    </message>
    <message>
        <source>Copied to the clipboard: {text}</source>
        <translation>已复制到剪贴板：{text}</translation>
    </message>
    <message>
        <source>search {status}: trials {n}, loads {loads}, {time}</source>
        <translation>搜索{status}：试验 {n} 次，加载 {loads} 次，{time}</translation>
    </message>
    <message>
        <source>No configuration could be recommended</source>
        <translation>没有可推荐的配置</translation>
    </message>
    <message>
        <source>Nothing was measured</source>
        <translation>没有测量到任何内容</translation>
    </message>
    <message>
        <source>Recommended · speeds {depth}</source>
        <translation>推荐 · 速度（{depth}）</translation>
    </message>
    <message>
        <source>The result is on the clipboard.</source>
        <translation>结果已在剪贴板上。</translation>
    </message>
</context>
<context>
    <name>ResultsPage</name>
    <message>
        <source>Results</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>No results yet</source>
        <translation>还没有结果</translation>
    </message>
    <message>
        <source>Each search is kept here with everything it measured.</source>
        <translation>每次搜索及其全部测量都保存在这里。</translation>
    </message>
    <message>
        <source>Find Best Settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>Stored searches</source>
        <translation>已保存的搜索</translation>
    </message>
    <message>
        <source>Goal</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>Started</source>
        <translation>开始时间</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Trials</source>
        <translation>试验</translation>
    </message>
    <message>
        <source>Decode</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>Choose the other result in the list.</source>
        <translation>请在列表中选择另一个结果。</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Name of this result</source>
        <translation>此结果的名称</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Deleted: {name}</source>
        <translation>已删除：{name}</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Save the result</source>
        <translation>保存结果</translation>
    </message>
    <message>
        <source>RigTune results (*.json)</source>
        <translation>RigTune 结果 (*.json)</translation>
    </message>
    <message>
        <source>Written: {path}</source>
        <translation>已写入：{path}</translation>
    </message>
    <message>
        <source>Open a result</source>
        <translation>打开结果</translation>
    </message>
    <message>
        <source>The result is in the list now.</source>
        <translation>结果已加入列表。</translation>
    </message>
</context>
<context>
    <name>RunStep</name>
    <message>
        <source>Measuring</source>
        <translation>测量</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Everything measured so far is kept (Esc)</source>
        <translation>到目前为止的测量都会保留（Esc）</translation>
    </message>
    <message>
        <source>Progress of the search</source>
        <translation>搜索进度</translation>
    </message>
    <message>
        <source>Go On</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Measuring {model}</source>
        <translation>正在测量 {model}</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>正在启动引擎…</translation>
    </message>
    <message>
        <source>Waiting for you: go on, or stop and keep what was measured.</source>
        <translation>等待您的决定：继续，或停止并保留已测得的结果。</translation>
    </message>
    <message>
        <source>Stopping; what was measured is kept…</source>
        <translation>正在停止；已测量的内容会保留…</translation>
    </message>
    <message>
        <source>Trial {n}: {settings}</source>
        <translation>试验 {n}：{settings}</translation>
    </message>
    <message>
        <source>trials {trials}, loads {loads}</source>
        <translation>试验 {trials} 次，加载 {loads} 次</translation>
    </message>
    <message>
        <source>{elapsed}, longer than planned</source>
        <translation>已用 {elapsed}，比计划更久</translation>
    </message>
    <message>
        <source>{elapsed} of about {low} to {high}</source>
        <translation>已用 {elapsed}，预计 {low} 至 {high}</translation>
    </message>
    <message>
        <source>{elapsed} of at most about {high}</source>
        <translation>已用 {elapsed}，最多约 {high}</translation>
    </message>
    <message>
        <source>best so far: {what}</source>
        <translation>目前最佳：{what}</translation>
    </message>
</context>
<context>
    <name>Scene</name>
    <message>
        <source>loaded with the next message</source>
        <translation>随下一条消息加载</translation>
    </message>
    <message>
        <source>broken off</source>
        <translation>已中断</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>The model was unloaded; the next message loads it again.</source>
        <translation>模型已卸载；下一条消息会重新加载。</translation>
    </message>
    <message>
        <source>Nobody asked for a while: {text}</source>
        <translation>一段时间没有提问：{text}</translation>
    </message>
    <message>
        <source>not loaded</source>
        <translation>未加载</translation>
    </message>
    <message>
        <source>The context was full: the oldest {n} turns are summarised.</source>
        <translation>上下文已满：最早的 {n} 轮已总结。</translation>
    </message>
    <message>
        <source>The context was full: the oldest {n} turns are left out.</source>
        <translation>上下文已满：最早的 {n} 轮已省略。</translation>
    </message>
    <message>
        <source>Not saved: {what} It is tried again.</source>
        <translation>未保存：{what} 会再次尝试。</translation>
    </message>
    <message>
        <source>The context is full. Choose under “How the model is asked” what should happen then, begin a new chat, or tune for a longer context.</source>
        <translation>上下文已满。请在“如何向模型提问”中选择此时的处理方式，开始新聊天，或为更长的上下文寻找设置。</translation>
    </message>
    <message>
        <source>Go On</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>waiting for the engine: a search or the server uses it…</source>
        <translation>正在等待引擎：搜索或服务器正在使用它…</translation>
    </message>
    <message>
        <source>trying the chat template…</source>
        <translation>正在试用聊天模板…</translation>
    </message>
    <message>
        <source>loading the model…</source>
        <translation>正在加载模型…</translation>
    </message>
    <message>
        <source>This model has no chat template: it continues your text instead.</source>
        <translation>此模型没有聊天模板：它会续写您的文字。</translation>
    </message>
    <message>
        <source>Ending answers at “{stop}” may help.</source>
        <translation>让回答在“{stop}”处结束可能有帮助。</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
    <message>
        <source>Another program</source>
        <translation>另一个程序</translation>
    </message>
    <message>
        <source>{name} took graphics memory; {free} are left. Answers may get slow.</source>
        <translation>{name} 占用了显存；剩余 {free}。回答可能变慢。</translation>
    </message>
    <message>
        <source>The GPU sleeps.</source>
        <translation>显卡已休眠。</translation>
    </message>
    <message>
        <source>Draw now {now} W, {before} W with the model loaded.</source>
        <translation>现在功耗 {now} W，模型加载时为 {before} W。</translation>
    </message>
    <message>
        <source>unloaded after {time} idle</source>
        <translation>空闲 {time} 后卸载</translation>
    </message>
</context>
<context>
    <name>ServerPanel</name>
    <message>
        <source>Other programs on this machine can use the chosen model through an OpenAI-compatible address. Nothing is reachable from outside, and the token is new each time.</source>
        <translation>这台机器上的其他程序可以通过兼容 OpenAI 的地址使用所选模型。外部无法访问，且令牌每次都是新的。</translation>
    </message>
    <message>
        <source>&amp;Port</source>
        <translation>端口(&amp;P)</translation>
    </message>
    <message>
        <source>any free one</source>
        <translation>任意空闲端口</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>端口</translation>
    </message>
    <message>
        <source>Start Server</source>
        <translation>启动服务器</translation>
    </message>
    <message>
        <source>Stop Server</source>
        <translation>停止服务器</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>API 密钥</translation>
    </message>
    <message>
        <source>Copy the API key</source>
        <translation>复制 API 密钥</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Copy the model&apos;s name</source>
        <translation>复制模型名称</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>loading the model…</source>
        <translation>正在加载模型…</translation>
    </message>
    <message>
        <source>waiting for the engine…</source>
        <translation>正在等待引擎…</translation>
    </message>
    <message>
        <source>{n} so far, {active} now</source>
        <translation>共 {n} 个，当前 {active} 个</translation>
    </message>
    <message>
        <source>stopping…</source>
        <translation>正在停止…</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Look and language</source>
        <translation>外观和语言</translation>
    </message>
    <message>
        <source>&amp;How much to show</source>
        <translation>显示多少内容(&amp;H)</translation>
    </message>
    <message>
        <source>Simple: plain words, the choices that matter</source>
        <translation>简单：通俗用语，只显示重要选项</translation>
    </message>
    <message>
        <source>Expert: also llama.cpp&apos;s own names and options</source>
        <translation>专家：同时显示 llama.cpp 的名称和选项</translation>
    </message>
    <message>
        <source>&amp;Colours</source>
        <translation>颜色(&amp;C)</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>C&amp;ontrast</source>
        <translation>对比度(&amp;O)</translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation>高对比度</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>语言(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Memory sizes</source>
        <translation>内存单位(&amp;M)</translation>
    </message>
    <message>
        <source>GiB and MiB (as drivers count)</source>
        <translation>GiB 和 MiB（与驱动一致）</translation>
    </message>
    <message>
        <source>GB and MB (as shops count)</source>
        <translation>GB 和 MB（与商家标注一致）</translation>
    </message>
    <message>
        <source>&amp;Temperatures</source>
        <translation>温度(&amp;T)</translation>
    </message>
    <message>
        <source>Celsius</source>
        <translation>摄氏</translation>
    </message>
    <message>
        <source>Fahrenheit</source>
        <translation>华氏</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>测量</translation>
    </message>
    <message>
        <source>&amp;Live readings every</source>
        <translation>实时读数间隔(&amp;L)</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n} 秒</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Memory to lea&amp;ve free</source>
        <translation>保留的空闲内存(&amp;V)</translation>
    </message>
    <message>
        <source>Memory to leave free</source>
        <translation>保留的空闲内存</translation>
    </message>
    <message>
        <source>Automatic leaves 512 MiB on a GPU that drives a display, 256 MiB on others. During a search readings follow its own pace.</source>
        <translation>自动模式在驱动显示器的 GPU 上保留 512 MiB，其他 GPU 上保留 256 MiB。搜索期间，读数按搜索自己的节奏进行。</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Models of LM Studio, Ollama, Hugging Face, Jan, GPT4All and llama.cpp are found where they lie. Further folders to look into:</source>
        <translation>LM Studio、Ollama、Hugging Face、Jan、GPT4All 和 llama.cpp 的模型会在原处找到。还要查找的文件夹：</translation>
    </message>
    <message>
        <source>Show RigTune&apos;s Own Files</source>
        <translation>显示 RigTune 自己的文件</translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation>隐私</translation>
    </message>
    <message>
        <source>RigTune works offline and needs no account. It sends nothing: no usage, no results, no conversations. Models are read where they lie and never changed. Results and conversations stay in RigTune&apos;s own folder on this machine; logs hold no text of conversations. What leaves this machine is only what you copy or export yourself.</source>
        <translation>RigTune 离线工作，无需账户。它不发送任何内容：不发送使用情况、结果或对话。模型在原处读取，从不更改。结果和对话保存在这台机器上 RigTune 自己的文件夹中；日志不含对话文字。只有您自己复制或导出的内容才会离开这台机器。</translation>
    </message>
    <message>
        <source>RigTune&apos;s files lie in {folder}</source>
        <translation>RigTune 的文件位于 {folder}</translation>
    </message>
</context>
<context>
    <name>Setup</name>
    <message>
        <source>None</source>
        <translation>无</translation>
    </message>
    <message>
        <source>How the model should be (optional)</source>
        <translation>模型应当如何表现（可选）</translation>
    </message>
    <message>
        <source>Stop and say so</source>
        <translation>停止并说明</translation>
    </message>
    <message>
        <source>Leave out the oldest turns</source>
        <translation>省略最早的轮次</translation>
    </message>
    <message>
        <source>Summarise the oldest turns</source>
        <translation>总结最早的轮次</translation>
    </message>
    <message>
        <source>The model&apos;s own</source>
        <translation>模型自带</translation>
    </message>
    <message>
        <source>None: plain text</source>
        <translation>无：纯文本</translation>
    </message>
    <message>
        <source>Text that ends an answer (optional)</source>
        <translation>使回答结束的文字（可选）</translation>
    </message>
    <message>
        <source>&amp;Preset</source>
        <translation>预设(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;System prompt</source>
        <translation>系统提示(&amp;S)</translation>
    </message>
    <message>
        <source>When the &amp;context is full</source>
        <translation>上下文已满时(&amp;C)</translation>
    </message>
    <message>
        <source>Chat &amp;template</source>
        <translation>聊天模板(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;End answers at</source>
        <translation>回答结束于(&amp;E)</translation>
    </message>
    <message>
        <source>Assistant: brief and honest</source>
        <translation>助手：简短而诚实</translation>
    </message>
    <message>
        <source>Code: working examples</source>
        <translation>代码：可运行的示例</translation>
    </message>
    <message>
        <source>Writing: a careful editor</source>
        <translation>写作：细致的编辑</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>{page} ({keys})</source>
        <translation>{page}（{keys}）</translation>
    </message>
</context>
<context>
    <name>StepLine</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Goal</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>计划</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>测量</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Step {n} of {count}: {name}</source>
        <translation>第 {n} 步，共 {count} 步：{name}</translation>
    </message>
</context>
<context>
    <name>Strips</name>
    <message>
        <source>Busy time</source>
        <translation>忙碌时间</translation>
    </message>
    <message>
        <source>VRAM in use</source>
        <translation>已用显存</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>limit</source>
        <translation>上限</translation>
    </message>
    <message>
        <source>Power limit in force</source>
        <translation>当前功率上限</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Core clock</source>
        <translation>核心频率</translation>
    </message>
    <message>
        <source>Time held back</source>
        <translation>受限时间占比</translation>
    </message>
    <message>
        <source>Shared memory</source>
        <translation>共享内存</translation>
    </message>
    <message>
        <source>PCIe to the GPU</source>
        <translation>至 GPU 的 PCIe 流量</translation>
    </message>
    <message>
        <source>CPU busy time</source>
        <translation>CPU 忙碌时间</translation>
    </message>
    <message>
        <source>RAM available</source>
        <translation>可用内存</translation>
    </message>
    <message>
        <source>Swap in use</source>
        <translation>已用交换空间</translation>
    </message>
    <message>
        <source>CPU temperature</source>
        <translation>CPU 温度</translation>
    </message>
</context>
<context>
    <name>SweepPlot</name>
    <message>
        <source>Speed by settings</source>
        <translation>各设置的速度</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Depth</source>
        <translation>深度</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Prefill tok/s</source>
        <translation>预填充 tok/s</translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation>生成 tok/s</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>测量</translation>
    </message>
    <message>
        <source>Decode</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>Against</source>
        <translation>横轴</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>Recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>Cliff</source>
        <translation>断崖</translation>
    </message>
    <message>
        <source>● measured, with 95 % interval</source>
        <translation>● 已测量，含 95 % 区间</translation>
    </message>
    <message>
        <source>▽ spilled into shared memory</source>
        <translation>▽ 溢出到共享内存</translation>
    </message>
    <message>
        <source>✕ did not run</source>
        <translation>✕ 未能运行</translation>
    </message>
    <message>
        <source>▒ expected in between, ±&#xa0;8&#xa0;%</source>
        <translation>▒ 其间的预期值，±&#xa0;8&#xa0;%</translation>
    </message>
    <message>
        <source>◇ knee: saves memory</source>
        <translation>◇ 拐点：节省内存</translation>
    </message>
    <message>
        <source>No speed measured yet.</source>
        <translation>尚未测得速度。</translation>
    </message>
    <message>
        <source>{measure} is best at {knob} {x:g}: {speed}. Trials shown: {n}.</source>
        <translation>{measure}在 {knob} {x:g} 时最佳：{speed}。显示的试验：{n}。</translation>
    </message>
    <message>
        <source>Speeds {depth}.</source>
        <translation>速度（{depth}）。</translation>
    </message>
</context>
<context>
    <name>Toolbar</name>
    <message>
        <source>Check Again</source>
        <translation>重新测量</translation>
    </message>
    <message>
        <source>Measure the recommendation again and compare</source>
        <translation>重新测量推荐设置并比较</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>Compare with another result</source>
        <translation>与另一个结果比较</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>重命名…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Save as JSON…</source>
        <translation>另存为 JSON…</translation>
    </message>
    <message>
        <source>Open JSON…</source>
        <translation>打开 JSON…</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
</context>
<context>
    <name>Unfinished</name>
    <message>
        <source>The last search, of {model}, has not reached its end. What it measured is kept.</source>
        <translation>上次对 {model} 的搜索尚未完成。已测得的结果均已保留。</translation>
    </message>
    <message>
        <source>Go On</source>
        <translation>继续</translation>
    </message>
</context>
<context>
    <name>WizardPage</name>
    <message>
        <source>Find best settings</source>
        <translation>寻找最佳设置</translation>
    </message>
    <message>
        <source>New Search</source>
        <translation>新搜索</translation>
    </message>
    <message>
        <source>The search of {model} has ended: {status}.</source>
        <translation>{model} 的搜索已结束：{status}。</translation>
    </message>
    <message>
        <source>The search waits for you. {why}</source>
        <translation>搜索正在等您。{why}</translation>
    </message>
</context>
<context>
    <name>Words</name>
    <message>
        <source>fits</source>
        <translation>可容纳</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>勉强可容纳</translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Compute buffers</source>
        <translation>计算缓冲</translation>
    </message>
    <message>
        <source>Driver and growth</source>
        <translation>驱动与增长</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Short questions and answers</source>
        <translation>简短提问，快速回答</translation>
    </message>
    <message>
        <source>Documents</source>
        <translation>文档</translation>
    </message>
    <message>
        <source>Long texts in, summaries out</source>
        <translation>输入长文本，输出摘要</translation>
    </message>
    <message>
        <source>Agent</source>
        <translation>智能体</translation>
    </message>
    <message>
        <source>Four requests at once</source>
        <translation>同时处理四个请求</translation>
    </message>
    <message>
        <source>Long context</source>
        <translation>长上下文</translation>
    </message>
    <message>
        <source>Long memory, good speed</source>
        <translation>在足够快的前提下记忆最长</translation>
    </message>
    <message>
        <source>Quiet</source>
        <translation>安静</translation>
    </message>
    <message>
        <source>Chat with less heat and noise</source>
        <translation>聊天时发热和噪音更少</translation>
    </message>
    <message>
        <source>Quick, up to 3 min</source>
        <translation>快速，最多 3 分钟</translation>
    </message>
    <message>
        <source>Standard, up to 12 min</source>
        <translation>标准，最多 12 分钟</translation>
    </message>
    <message>
        <source>Thorough, up to 45 min</source>
        <translation>彻底，最多 45 分钟</translation>
    </message>
    <message>
        <source>complete</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>stopped at its budget</source>
        <translation>达到预算后停止</translation>
    </message>
    <message>
        <source>not finished</source>
        <translation>未完成</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>已测量</translation>
    </message>
    <message>
        <source>out of memory</source>
        <translation>内存不足</translation>
    </message>
    <message>
        <source>load failed</source>
        <translation>加载失败</translation>
    </message>
    <message>
        <source>not supported</source>
        <translation>不支持</translation>
    </message>
    <message>
        <source>timed out</source>
        <translation>超时</translation>
    </message>
    <message>
        <source>device lost</source>
        <translation>设备丢失</translation>
    </message>
    <message>
        <source>engine crashed</source>
        <translation>引擎崩溃</translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>spilled</source>
        <translation>溢出</translation>
    </message>
    <message>
        <source>throttled</source>
        <translation>降频</translation>
    </message>
    <message>
        <source>starting the engine</source>
        <translation>启动引擎</translation>
    </message>
    <message>
        <source>loading weights</source>
        <translation>加载权重</translation>
    </message>
    <message>
        <source>creating the context</source>
        <translation>创建上下文</translation>
    </message>
    <message>
        <source>warming up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>timing prefill</source>
        <translation>测量预填充</translation>
    </message>
    <message>
        <source>timing decode</source>
        <translation>测量生成</translation>
    </message>
    <message>
        <source>checking the output</source>
        <translation>正在检查输出</translation>
    </message>
    <message>
        <source>letting the GPU cool down</source>
        <translation>正在让 GPU 降温</translation>
    </message>
    <message>
        <source>GPU layers</source>
        <translation>GPU 层数</translation>
    </message>
    <message>
        <source>Expert layers on CPU</source>
        <translation>CPU 上的专家层</translation>
    </message>
    <message>
        <source>Tensors placed by name</source>
        <translation>按名称放置的张量</translation>
    </message>
    <message>
        <source>Decode threads</source>
        <translation>生成线程</translation>
    </message>
    <message>
        <source>Prefill threads</source>
        <translation>预填充线程</translation>
    </message>
    <message>
        <source>Prompt batch</source>
        <translation>提示批大小</translation>
    </message>
    <message>
        <source>Physical batch</source>
        <translation>物理批大小</translation>
    </message>
    <message>
        <source>Context length</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>Flash attention</source>
        <translation>Flash Attention</translation>
    </message>
    <message>
        <source>K cache type</source>
        <translation>K 缓存类型</translation>
    </message>
    <message>
        <source>V cache type</source>
        <translation>V 缓存类型</translation>
    </message>
    <message>
        <source>Weights in RAM</source>
        <translation>内存中的权重</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Parallel sequences</source>
        <translation>并行序列</translation>
    </message>
    <message>
        <source>How devices share the model</source>
        <translation>设备如何分担模型</translation>
    </message>
    <message>
        <source>Share of each device</source>
        <translation>各设备的份额</translation>
    </message>
    <message>
        <source>KV cache on the GPU</source>
        <translation>KV 缓存放在 GPU 上</translation>
    </message>
    <message>
        <source>Prompt of CPU layers on the GPU</source>
        <translation>CPU 层的提示词在 GPU 上处理</translation>
    </message>
    <message>
        <source>Tokens in context</source>
        <translation>上下文中的 token 数</translation>
    </message>
    <message>
        <source>Trial</source>
        <translation>试验</translation>
    </message>
    <message>
        <source>A short first look</source>
        <translation>简短的初步试探</translation>
    </message>
    <message>
        <source>Which loads memory allows</source>
        <translation>内存允许哪些加载方式</translation>
    </message>
    <message>
        <source>Baseline: llama.cpp&apos;s own fit</source>
        <translation>基准：llama.cpp 自动适配</translation>
    </message>
    <message>
        <source>Baseline: CPU only</source>
        <translation>基准：仅 CPU</translation>
    </message>
    <message>
        <source>Which device is fastest</source>
        <translation>哪个设备最快</translation>
    </message>
    <message>
        <source>How many layers on the GPU</source>
        <translation>多少层放在 GPU 上</translation>
    </message>
    <message>
        <source>Weights in RAM: mapped or pinned</source>
        <translation>内存中的权重：映射或锁定</translation>
    </message>
    <message>
        <source>The best so far, measured again</source>
        <translation>再次测量目前最优的配置</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>KV cache type</source>
        <translation>KV 缓存类型</translation>
    </message>
    <message>
        <source>Speed with a filling context</source>
        <translation>上下文填充时的速度</translation>
    </message>
    <message>
        <source>Final: the best two, compared in turns</source>
        <translation>决赛：最好的两个轮流比较</translation>
    </message>
    <message>
        <source>Whether the speed lasts</source>
        <translation>速度能否持续</translation>
    </message>
    <message>
        <source>Two engines compared</source>
        <translation>两个引擎版本的比较</translation>
    </message>
    <message>
        <source>Re-check of an earlier result</source>
        <translation>复查以前的结果</translation>
    </message>
    <message>
        <source>clock setting</source>
        <translation>频率设置</translation>
    </message>
    <message>
        <source>power limit</source>
        <translation>功率上限</translation>
    </message>
    <message>
        <source>hardware slowdown</source>
        <translation>硬件降速</translation>
    </message>
    <message>
        <source>kept in step with another card</source>
        <translation>与另一张卡同步</translation>
    </message>
    <message>
        <source>heat</source>
        <translation>过热</translation>
    </message>
    <message>
        <source>heat, hardware limit</source>
        <translation>过热（硬件限制）</translation>
    </message>
    <message>
        <source>power brake</source>
        <translation>功率制动</translation>
    </message>
    <message>
        <source>display clocks</source>
        <translation>显示时钟</translation>
    </message>
    <message>
        <source>board limit</source>
        <translation>板卡限制</translation>
    </message>
    <message>
        <source>voltage limit</source>
        <translation>电压限制</translation>
    </message>
    <message>
        <source>processor or board too hot</source>
        <translation>处理器或主板过热</translation>
    </message>
    <message>
        <source>another reason</source>
        <translation>其他原因</translation>
    </message>
    <message>
        <source>Something went wrong.</source>
        <translation>出现问题。</translation>
    </message>
    <message>
        <source>{sentence} ({details})</source>
        <translation>{sentence}（{details}）</translation>
    </message>
    <message>
        <source>with an empty context</source>
        <translation>上下文为空时</translation>
    </message>
    <message>
        <source>at {n} tokens in context</source>
        <translation>上下文有 {n} 个 token 时</translation>
    </message>
    <message>
        <source>GPU layers {n}</source>
        <translation>GPU 层数 {n}</translation>
    </message>
    <message>
        <source>context {n}</source>
        <translation>上下文 {n}</translation>
    </message>
    <message>
        <source>batch {n}</source>
        <translation>批大小 {n}</translation>
    </message>
    <message>
        <source>expert layers on CPU {n}</source>
        <translation>CPU 上的专家层 {n}</translation>
    </message>
    <message>
        <source>tensors {rules}</source>
        <translation>张量 {rules}</translation>
    </message>
    <message>
        <source>threads {n}</source>
        <translation>线程 {n}</translation>
    </message>
    <message>
        <source>KV {k}/{v}</source>
        <translation>KV {k}/{v}</translation>
    </message>
    <message>
        <source>flash attention off</source>
        <translation>关闭 Flash Attention</translation>
    </message>
    <message>
        <source>split mode {mode}</source>
        <translation>切分方式 {mode}</translation>
    </message>
    <message>
        <source>weights pinned</source>
        <translation>锁定权重</translation>
    </message>
</context>
</TS>
