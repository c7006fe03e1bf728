/* Rust's standard library (pydantic) takes its random bytes from here; Wine 8 has no such DLL. */
#include <windows.h>
#include <ntsecapi.h> /* RtlGenRandom, of advapi32 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T size)
{
    while (size) {
        ULONG part = size > 65536 ? 65536 : (ULONG)size;
        if (!RtlGenRandom(data, part)) return FALSE;
        data += part;
        size -= part;
    }
    return TRUE;
}
