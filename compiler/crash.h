/* A failure of our own is status 3 and says so, never a bare abort. */
#ifndef JAXCC_CRASH_H
#define JAXCC_CRASH_H

void crash_report(void);

#endif
