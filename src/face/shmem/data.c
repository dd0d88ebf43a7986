// SPDX-License-Identifier: MIT
// The program's static and global objects: the writable part of its own image. It lies at the same distance
// from its base in every PE, whatever the base is, since all PEs run one program.
#include <errno.h>
#include <link.h>
#include <unistd.h>

#include "face/shmem/shmem_face.h"

struct image {
    uint64_t from, to;             // writable
    uint64_t relro_from, relro_to; // made read-only by the loader
};

// The first object that is listed is the program itself.
static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct image *image = arg;

    (void)size;
    image->from = ~0ull;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t from = info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
        if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
            image->from = from < image->from ? from : image->from;
            image->to = to > image->to ? to : image->to;
        } else if (p->p_type == PT_GNU_RELRO) {
            image->relro_from = from;
            image->relro_to = to;
        }
    }
    return 1;
}

int osh_data_find(uint64_t *base, uint64_t *len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct image image = {0};

    dl_iterate_phdr(first_object, &image);
    // The linker lays what becomes read-only before the rest; the loader protects whole pages.
    if (image.relro_to > image.from && image.relro_from <= image.from + page)
        image.from = (image.relro_to & ~(page - 1)) > image.from ? image.relro_to & ~(page - 1) : image.from;
    if (image.from >= image.to)
        return -ENOENT;
    *base = image.from;
    *len = image.to - image.from;
    return 0;
}
