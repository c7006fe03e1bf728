/* Included before everything of llama.cpp: mingw-w64 10 (Debian 12) lacks these. */
#pragma once
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 1
typedef struct {
    unsigned long Version, ControlMask, StateMask;
} THREAD_POWER_THROTTLING_STATE;
