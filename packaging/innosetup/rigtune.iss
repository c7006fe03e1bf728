; Inno Setup 6: the Windows installer, for this user only and without administrator's rights.
;
;     iscc /DVersion=0.1.0 /DBundle=DIST\rigtune /O"DIST" packaging\innosetup\rigtune.iss
;
; Compiled and run under Wine (docs/install.md); the release workflow does it on Windows.

#ifndef Version
  #error Say which version: /DVersion=1.2.3
#endif
#ifndef Bundle
  #error Say where the bundle lies: /DBundle=DIST\rigtune
#endif

[Setup]
; The same id in every version makes a newer one replace an older one in its place.
AppId={{7B1C8E0B-52B5-4E0F-9F6C-3A4B0F2D9A61}
AppName=RigTune
AppVersion={#Version}
AppVerName=RigTune {#Version}
AppPublisher=The RigTune authors
VersionInfoVersion={#Version}
PrivilegesRequired=lowest
; Where Windows puts the programs of one user.
DefaultDirName={localappdata}\Programs\RigTune
DisableProgramGroupPage=yes
DisableDirPage=auto
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile=..\..\LICENSE
OutputBaseFilename=rigtune-{#Version}-windows-x86_64
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
UninstallDisplayIcon={app}\rigtune-gui.exe
; A running program is asked to close; its workers end with it (they live in its job object).
CloseApplications=yes
RestartApplications=no
ChangesEnvironment=yes

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"

[Tasks]
Name: "path"; Description: "Let me type ""rigtune"" in a terminal"

[InstallDelete]
; What an older version had and this one has not must not be loaded by mistake.
Type: filesandordirs; Name: "{app}\_internal"

[UninstallDelete]
Type: filesandordirs; Name: "{app}\previous"

[Files]
Source: "{#Bundle}\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{autoprograms}\RigTune"; Filename: "{app}\rigtune-gui.exe"; AppUserModelID: "RigTune"

[Run]
Filename: "{app}\rigtune-gui.exe"; Description: "Start RigTune"; Flags: postinstall nowait skipifsilent

[Code]
const
  EnvironmentKey = 'Environment';

function InPath(Paths: string): Boolean;
begin
  Result := Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', ';' + Uppercase(Paths) + ';') > 0;
end;

procedure AddToPath;
var
  Paths: string;
begin
  if not RegQueryStringValue(HKCU, EnvironmentKey, 'Path', Paths) then
    Paths := '';
  if InPath(Paths) then
    exit;
  if (Paths <> '') and (Paths[Length(Paths)] <> ';') then
    Paths := Paths + ';';
  RegWriteExpandStringValue(HKCU, EnvironmentKey, 'Path', Paths + ExpandConstant('{app}'));
end;

procedure RemoveFromPath;
var
  Paths: string;
  Start: Integer;
begin
  if not RegQueryStringValue(HKCU, EnvironmentKey, 'Path', Paths) or not InPath(Paths) then
    exit;
  Paths := ';' + Paths + ';';
  Start := Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', Uppercase(Paths));
  Delete(Paths, Start, Length(ExpandConstant('{app}')) + 1);
  RegWriteExpandStringValue(HKCU, EnvironmentKey, 'Path', Copy(Paths, 2, Length(Paths) - 2));
end;

{ The engine of the version that is replaced stays, so that the user can go back to it (rigtune
  engine): unless it is the same version, or was left for the one before. }
procedure KeepEngine;
var
  App, Kept, Older: string;
begin
  App := ExpandConstant('{app}');
  Kept := App + '\previous';
  if not GetVersionNumbersString(App + '\rigtune.exe', Older) or (Older = '{#Version}.0') then
    exit;
  if FileExists(ExpandConstant('{localappdata}\rigtune\previous-engine-in-use'))
    and DirExists(Kept) then
    exit;
  DelTree(Kept, True, True, True);
  if not CreateDir(Kept) then
    exit;
  if RenameFile(App + '\_internal', Kept + '\_internal') then
    RenameFile(App + '\rigtune.exe', Kept + '\rigtune.exe');
  DelTree(Kept + '\_internal\PySide6', True, True, True);
  DelTree(Kept + '\_internal\shiboken6', True, True, True);
end;

procedure CurStepChanged(CurStep: TSetupStep);
begin
  { [InstallDelete] comes after this. }
  if CurStep = ssInstall then
    KeepEngine;
  if (CurStep = ssPostInstall) and WizardIsTaskSelected('path') then
    AddToPath;
end;

{ Results and settings stay unless the user says otherwise; a silent removal keeps them. }
procedure CurUninstallStepChanged(CurUninstallStep: TUninstallStep);
var
  Data: string;
begin
  if CurUninstallStep <> usPostUninstall then
    exit;
  RemoveFromPath;
  Data := ExpandConstant('{localappdata}\rigtune');
  if DirExists(Data) and not UninstallSilent then
    if MsgBox('Remove the results and conversations of RigTune too?', mbConfirmation,
      MB_YESNO or MB_DEFBUTTON2) = IDYES then
      DelTree(Data, True, True, True);
end;
