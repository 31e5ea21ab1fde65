#!/bin/bash
# Read by scripts/release.sh and scripts/release/packages.sh: how an archive is packed.

# The time of the commit, nobody's name, one order: nothing of this machine or this hour.
packed() { # folder, what in it
  local when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
  LC_ALL=C tar --create --format=ustar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --directory="$1" "$2" | gzip --no-name -9
}
