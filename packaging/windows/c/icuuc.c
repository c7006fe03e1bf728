/* The icuuc.dll of Windows 10: Qt6Core.dll imports it and Wine 8 has none. Every converter is
   "unsupported" here, so Qt keeps to its built-in UTF and Latin-1 codecs. The calling convention of
   x64 lets a function ignore arguments, so only those that are used are declared. */
#define EXPORT __declspec(dllexport)
enum { U_UNSUPPORTED_ERROR = 16 };
static void refuse(int *error) { if (error) *error = U_UNSUPPORTED_ERROR; }

EXPORT void *ucnv_open(const char *n, int *e) { (void)n; refuse(e); return 0; }
EXPORT const char *ucnv_getName(const void *c, int *e) { (void)c; refuse(e); return 0; }
EXPORT int ucnv_toUCountPending(const void *c, int *e) { (void)c; refuse(e); return 0; }
EXPORT int ucnv_fromUCountPending(const void *c, int *e) { (void)c; refuse(e); return 0; }
EXPORT const char *ucnv_getStandardName(const char *n, const char *s, int *e)
{
    (void)n; (void)s; refuse(e);
    return 0;
}
EXPORT void ucnv_setToUCallBack(void *c, void *a, const void *x, void **b, const void **y, int *e)
{
    (void)c; (void)a; (void)x; (void)b; (void)y; refuse(e);
}
EXPORT void ucnv_setFromUCallBack(void *c, void *a, const void *x, void **b, const void **y, int *e)
{
    (void)c; (void)a; (void)x; (void)b; (void)y; refuse(e);
}
EXPORT void ucnv_cbToUWriteUChars(void *a, const void *s, int n, int o, int *e)
{
    (void)a; (void)s; (void)n; (void)o; refuse(e);
}
EXPORT void ucnv_cbFromUWriteUChars(void *a, const void **s, const void *l, int o, int *e)
{
    (void)a; (void)s; (void)l; (void)o; refuse(e);
}
EXPORT void ucnv_toUnicode(void *c, void **t, const void *l, const char **s, const char *m, int *o,
                           signed char f, int *e)
{
    (void)c; (void)t; (void)l; (void)s; (void)m; (void)o; (void)f; refuse(e);
}
EXPORT void ucnv_fromUnicode(void *c, char **t, const char *l, const void **s, const void *m,
                             int *o, signed char f, int *e)
{
    (void)c; (void)t; (void)l; (void)s; (void)m; (void)o; (void)f; refuse(e);
}
EXPORT void ucnv_getToUCallBack(const void *c, void **a, const void **x)
{
    (void)c;
    *a = 0;
    *x = 0;
}
EXPORT void ucnv_close(void) {}
EXPORT void ucnv_reset(void) {}
EXPORT void UCNV_FROM_U_CALLBACK_SUBSTITUTE(void) {}
EXPORT void UCNV_TO_U_CALLBACK_SUBSTITUTE(void) {}
EXPORT signed char ucnv_getMaxCharSize(void) { return 4; }
EXPORT const char *ucnv_getAvailableName(void) { return 0; }
EXPORT int ucnv_countAvailable(void) { return 0; }
