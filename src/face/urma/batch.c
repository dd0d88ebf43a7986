// SPDX-License-Identifier: MIT
// Deleting many objects by one call: one after the other, in the order of the array. It stops at the first
// that is refused and names it.
#include "face/urma/urma_face.h"

// The arguments are looked at first: nothing is deleted if one of them is no object.
#define CHECKED(call, array, number, bad)                                                                    \
    do {                                                                                                     \
        if (!(array) || (number) <= 0 || !(bad))                                                             \
            return dock_refuse(URMA_EINVAL, call ": no array, %d objects, or no place for a bad one",        \
                               number);                                                                      \
        for (int i_ = 0; i_ < (number); i_++)                                                                \
            if (!(array)[i_]) {                                                                              \
                *(bad) = (array)[0];                                                                         \
                return dock_refuse(URMA_EINVAL, call ": object %d is NULL, nothing was deleted", i_);        \
            }                                                                                                \
    } while (0)

urma_status_t urma_delete_jfc_batch(urma_jfc_t **jfc_arr, int jfc_num, urma_jfc_t **bad_jfc)
{
    urma_status_t status = URMA_SUCCESS;

    CHECKED("urma_delete_jfc_batch", jfc_arr, jfc_num, bad_jfc);
    for (int i = 0; i < jfc_num && !status; i++) {
        status = urma_delete_jfc(jfc_arr[i]);
        if (status)
            *bad_jfc = jfc_arr[i];
    }
    return status;
}

urma_status_t urma_delete_jfs_batch(urma_jfs_t **jfs_arr, int jfs_num, urma_jfs_t **bad_jfs)
{
    urma_status_t status = URMA_SUCCESS;

    CHECKED("urma_delete_jfs_batch", jfs_arr, jfs_num, bad_jfs);
    for (int i = 0; i < jfs_num && !status; i++) {
        status = urma_delete_jfs(jfs_arr[i]);
        if (status)
            *bad_jfs = jfs_arr[i];
    }
    return status;
}

urma_status_t urma_delete_jfr_batch(urma_jfr_t **jfr_arr, int jfr_num, urma_jfr_t **bad_jfr)
{
    urma_status_t status = URMA_SUCCESS;

    CHECKED("urma_delete_jfr_batch", jfr_arr, jfr_num, bad_jfr);
    for (int i = 0; i < jfr_num && !status; i++) {
        status = urma_delete_jfr(jfr_arr[i]);
        if (status)
            *bad_jfr = jfr_arr[i];
    }
    return status;
}

urma_status_t urma_delete_jetty_batch(urma_jetty_t **jetty_arr, int jetty_num, urma_jetty_t **bad_jetty)
{
    urma_status_t status = URMA_SUCCESS;

    CHECKED("urma_delete_jetty_batch", jetty_arr, jetty_num, bad_jetty);
    for (int i = 0; i < jetty_num && !status; i++) {
        status = urma_delete_jetty(jetty_arr[i]);
        if (status)
            *bad_jetty = jetty_arr[i];
    }
    return status;
}
