; Inno Setup 6: the optional power helper for Windows, for all users, by an administrator.
;
;     iscc /DVersion=0.1.0 /DHelper=DIST\rigtune-power /O"DIST" packaging\innosetup\power.iss
;
; RigTune starts the helper from this folder only, where nobody but administrators can write.

#ifndef Version
  #error Say which version: /DVersion=1.2.3
#endif
#ifndef Helper
  #error Say where the helper lies: /DHelper=DIST\rigtune-power
#endif

[Setup]
AppId={{3F0B7C52-0E5C-4C4E-9B0E-6B5D1B1C7E42}
AppName=RigTune power helper
AppVersion={#Version}
AppVerName=RigTune power helper {#Version}
AppPublisher=The RigTune authors
VersionInfoVersion={#Version}
PrivilegesRequired=admin
DefaultDirName={commonpf}\RigTune\power
DisableDirPage=yes
DisableProgramGroupPage=yes
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile=..\..\LICENSE
OutputBaseFilename=rigtune-power-{#Version}-windows-x86_64
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
CloseApplications=yes
RestartApplications=no

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"

[InstallDelete]
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Helper}\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[UninstallDelete]
Type: dirifempty; Name: "{app}\journal"

[Code]
{ What the journal holds is still to be put back, and only the helper can. }
function InitializeUninstall: Boolean;
var
  Found: TFindRec;
begin
  Result := not FindFirst(ExpandConstant('{app}\journal\*.json'), Found);
  if not Result then
  begin
    FindClose(Found);
    SuppressibleMsgBox('A power limit is still to be put back: start RigTune once, or restart the '
      + 'computer and start RigTune then.', mbError, MB_OK, IDOK);
  end;
end;
