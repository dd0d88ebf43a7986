// SPDX-License-Identifier: MIT
#ifndef DOCK_BASE_VERSION_H
#define DOCK_BASE_VERSION_H

// The release as "major.minor.patch"; a static string, never NULL.
const char *dock_version(void);

#endif
