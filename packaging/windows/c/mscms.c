/* Wine 8 only stubs this; Qt's windows platform plugin calls it for the screen's colour profile. */
void *x_WcsCreateIccProfile(void *profile, unsigned options)
{
    (void)profile; (void)options;
    return 0;
}
