/* python.exe and pythonw.exe: hand the command line to the Python DLL. */
#include <windows.h>
#include <shellapi.h>
#include <stdio.h>

static int start(void)
{
    int argc = 0;
    wchar_t **argv = CommandLineToArgvW(GetCommandLineW(), &argc);
    HMODULE dll = LoadLibraryW(L"python311.dll");
    int (*py_main)(int, wchar_t **) = dll ? (void *)GetProcAddress(dll, "Py_Main") : 0;
    if (!argv || !py_main) {
        fprintf(stderr, "cannot load python311.dll: error %lu\n", GetLastError());
        return 103;
    }
    return py_main(argc, argv);
}

#ifdef WINDOWED
int WINAPI wWinMain(HINSTANCE instance, HINSTANCE before, wchar_t *line, int show)
{
    (void)instance; (void)before; (void)line; (void)show;
    return start();
}
#else
int wmain(void) { return start(); }
#endif
