<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en">
<context>
    <name>EngineCard</name>
    <message numerus="yes">
        <source>%n stored profile(s) were measured by another engine: {names}. Their settings are used as before; their speeds may not hold until they are measured again.</source>
        <translation>
            <numerusform>%n stored profile was measured by another engine: {names}. Its settings are used as before; its speed may not hold until it is measured again.</numerusform>
            <numerusform>%n stored profiles were measured by another engine: {names}. Their settings are used as before; their speeds may not hold until they are measured again.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>GoalStep</name>
    <message numerus="yes">
        <source>%n block(s)</source>
        <translation>
            <numerusform>%n block</numerusform>
            <numerusform>%n blocks</numerusform>
        </translation>
    </message>
</context>
</TS>
