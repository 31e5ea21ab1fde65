/* A bcryptprimitives.dll for wine 8, which has none. Rust's standard library takes its random numbers from it, so every Windows program
   of ours loads it, before it reads its environment.

   wine replaces USERPROFILE, PATH, TEMP and others by those of its prefix. The worlds of the tests have their own: start.sh passes them
   with a prefix before their names. */
#include <windows.h>
#include <wchar.h>

#define PREFIX L"IN_WINE_"
#define PREFIX_LENGTH (sizeof(PREFIX) / sizeof(WCHAR) - 1)

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
  while (length > 0) {
    ULONG part = length > 0x10000000 ? 0x10000000 : (ULONG)length;
    if (!SystemFunction036(buffer, part)) return FALSE;
    buffer += part;
    length -= part;
  }
  return TRUE;
}

/* Moves the value of IN_WINE_NAME to NAME. The environment is a copy here, so it may be changed meanwhile. */
static void rename_variables(WCHAR *environment) {
  WCHAR *end;
  for (WCHAR *variable = environment; *variable; variable = end + 1) {
    end = variable + wcslen(variable);
    WCHAR *value = wcschr(variable, L'=');
    if (!value || wcsncmp(variable, PREFIX, PREFIX_LENGTH) != 0) continue;
    *value = 0;
    SetEnvironmentVariableW(variable + PREFIX_LENGTH, value + 1);
    SetEnvironmentVariableW(variable, NULL);
  }
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved) {
  (void)library;
  (void)reserved;
  if (reason == DLL_PROCESS_ATTACH) {
    WCHAR *environment = GetEnvironmentStringsW();
    if (!environment) return FALSE;
    rename_variables(environment);
    FreeEnvironmentStringsW(environment);
  }
  return TRUE;
}
