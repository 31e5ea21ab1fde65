# What wine needs, for wine.sh and what it starts. Each of them knows $wine_folder, below target/. Nothing is shared with the user's own
# wine; no window appears, and nothing is offered for download.
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's `wine` warns each time that it cannot start programs for 32 bits.
for WINELOADER in /usr/lib/wine/wine64 wine64 wine; do if command -v "$WINELOADER" >/dev/null; then break; fi; done
for WINESERVER in /usr/lib/wine/wineserver64 wineserver; do if command -v "$WINESERVER" >/dev/null; then break; fi; done
export WINELOADER WINESERVER WINEPREFIX=$wine_folder/prefix WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="
# Debian's wine looks for its server in TMPDIR: it is the same for all, wherever the tests have theirs.
wine_variables=("HOME=$wine_folder/home" "TMPDIR=$wine_folder")
unset DISPLAY WAYLAND_DISPLAY
