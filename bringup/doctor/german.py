"""What apt, dpkg, bash, sudo and the C library print in German, put into the English that the signs are written in.

The words are those of the programs' own translations (of several releases, which differ); systemd, the kernel, Docker and NVIDIA's
programs print English in every locale.
"""

from __future__ import annotations

import functools
import re

# a text without any of these is not tried
HINT = re.compile(
    r"\b(?:konnten?|nicht|wurden?|abhängigkeiten|fehlschlag|keine?|kann|sind|möglich|abgelehnt|offene|hängt|ist|unbekannt|überschreiben|beim)\b"
)
PHRASES = (
    # locks
    (r"sperre (\S+) konnte nicht (?:erlangt|bezogen) werden|konnte sperre (\S+) nicht bekommen", r"could not get lock \1\2"),
    (r"(?:s?die|diese?) wird von prozess (\d+)(?: \([^)\n]*\))? gehalten", r"it is held by process \1"),
    (r"erlangen der sperre für die dpkg-oberfläche \((\S+)\) nicht möglich", r"unable to acquire the dpkg frontend lock (\1)"),
    (r"wird (?:sie|es) von einem anderen prozess verwendet\?", "is another process using it?"),
    (r"sperren des administrationsverzeichnisses \((\S+)\) nicht möglich", r"unable to lock the administration directory (\1)"),
    (r"verzeichnis (\S+) kann nicht gesperrt werden", r"unable to lock directory \1"),
    (r"warten auf (?:sperre für zwischenspeicher|zwischenspeichersperre)", "waiting for cache lock"),
    (r"dpkg-frontend-sperre war von einem anderen prozess", "dpkg frontend lock was locked by another process"),
    # packages that are half installed, held, unknown, or do not fit
    (r"(?:der dpkg-prozess|dpkg) wurde unterbrochen", "dpkg was interrupted"),
    (r"muss neu installiert werden, es kann jedoch kein archiv", "needs to be reinstalled, but i can't find an archive for it"),
    (r"in einem sehr schlechten inkonsistenten zustand", "in a very bad inconsistent state"),
    (r"(?:der status )?(?:zurück)?gehaltene[rs]? pakete? wurden? (?:geändert|verändert) und", "held packages were changed and"),
    (r"-y wurde ohne (--allow-\S+) verwendet", r"-y was used without \1"),
    (r"die folgenden pakete (?:sind|wurden) zurückgehalten(?: worden)?", "the following packages have been kept back"),
    (r"sie haben (?:zurück)?gehaltene defekte pakete", "you have held broken packages"),
    (r"probleme können nicht korrigiert werden", "unable to correct problems"),
    (r"die folgenden pakete haben unerfüllte abhängigkeiten", "the following packages have unmet dependencies"),
    (r"unerfüllte abhängigkeiten", "unmet dependencies"),
    (r"hängt ab von(?: \(vorher\))?:", "depends:"),
    (r"kollidiert mit:", "conflicts:"),
    (r"soll aber nicht installiert werden", "but it is not going to be installed"),
    (r"ist aber nicht installierbar", "but it is not installable"),
    (r"(?:soll )?aber (\S+) (?:soll )?installiert werden", r"but \1 is to be installed"),
    (r"paket (\S+) kann nicht gefunden werden", r"unable to locate package \1"),
    (r"für paket (\S+) existiert kein installationskandidat", r"package \1 has no installation candidate"),
    (r"paket (\S+) hat keinen installationskandidaten", r"package \1 has no installation candidate"),
    (r"version (\S+) (?:für|von) (\S+) (?:konnte|wurde) nicht gefunden", r"version \1 for \2 was not found"),
    (r"versuch, (\S+) zu überschreiben, welches? auch in paket", r"trying to overwrite \1, which is also in package"),
    (r"fehler beim bearbeiten des (?:archivs|pakete?s)", "error processing"),
    # sources, keys, the network
    (r"(?:widersprüchliche|in konflikt stehende) werte(?: wurden)?(?: gesetzt)? für option (\S+)", r"conflicting values set for option \1"),
    (r"typ (\S+) (?:ist )?(?:unbekannt )?in (?:zeile|absatz) (\d+) der quellliste", r"type \1 is not known on line \2 in source list"),
    (r"missgestaltete[rs]? (?:eintrag|zeile|absatz) (\d+) in (?:list datei|quellliste)", r"malformed entry \1 in source list"),
    (r"die liste der quellen konnte nicht gelesen werden", "the list of sources could not be read"),
    (r"(?:das )?depot (»[^«\n]*«) enthält keine release-datei(?: mehr)?", r"the repository \1 does not have a release file"),
    (r"ist nicht (?:mehr )?signiert", "is not signed"),
    (r"signaturen konnten nicht überprüft werden", "signatures couldn't be verified"),
    (r"öffentlicher(\s+)schlüssel nicht verfügbar", r"public key is not available\1"),
    (r"signaturen waren ungültig", "signatures were invalid"),
    (r"keine gültigen openpgp-daten gefunden", "no valid openpgp data found"),
    (r"release-datei für (\S+) ist noch nicht gültig \(ungültig für weitere", r"release file for \1 is not valid yet (invalid for another"),
    (r"release-datei für (\S+) ist abgelaufen \(ungültig seit", r"release file for \1 is expired (invalid since"),
    (r"fehlschlag beim holen von", "failed to fetch"),
    (r"temporärer (?:fehlschlag beim auflösen von|fehler bei der namensauflösung)", "temporary failure resolving"),
    (r"verbindung mit (\S+) (?:\(\S+\) )?(?:nicht möglich|(?:konnte|kann) nicht aufgebaut werden)", r"could not connect to \1"),
    (r"hash-summe stimmt nicht überein|prüfsumme stimmt nicht", "hash sum mismatch"),
    (r"datei hat eine unerwartete größe", "file has unexpected size"),
    (r"einige indexdateien konnten nicht heruntergeladen werden", "some index files failed to download"),
    (r"einige archive konnten nicht heruntergeladen werden", "unable to fetch some archives"),
    (r"sie haben nicht genug platz|nicht genug freien speicherplatz", "you don't have enough free space"),
    # bash, sudo, the C library
    (r"(\S+): (?:kommando|befehl) nicht gefunden", r"\1: command not found"),
    (r"zum lesen des passworts ist ein terminal erforderlich", "a terminal is required to read the password"),
    (r"ein passwort ist (?:notwendig|erforderlich)", "a password is required"),
    (r"(\S+) (?:ist|steht) nicht in der (?:datei )?»?sudoers\S*", r"\1 is not in the sudoers file"),
    (r"darf sudo [^\n]{0,80}nicht ausführen", "is not allowed to run sudo"),
    (r"sie müssen ein tty haben, um sudo", "you must have a tty to run sudo"),
    (r"datei oder verzeichnis nicht gefunden", "no such file or directory"),
    (r"keine berechtigung", "permission denied"),
    (r"die operation ist nicht erlaubt", "operation not permitted"),
    (r"auf dem gerät ist kein speicherplatz mehr verfügbar", "no space left on device"),
    (r"zu viele offene dateien", "too many open files"),
    (r"verbindungsaufbau abgelehnt", "connection refused"),
    (r"die wartezeit für die verbindung ist abgelaufen", "connection timed out"),
    (r"keine route zum zielrechner", "no route to host"),
    (r"das netzwerk ist nicht erreichbar", "network is unreachable"),
    (r"fehler im format der programmdatei|falsches format der ausführbaren datei", "exec format error"),
    (r"(?:der notwendige|erforderlicher) schlüssel (?:ist )?nicht verfügbar", "required key not available"),
    (r"nicht genügend hauptspeicher verfügbar", "cannot allocate memory"),
    (r"die ressource ist zur zeit nicht verfügbar", "resource temporarily unavailable"),
    (r"die datei existiert bereits", "file exists"),
    (r"modul (nvidia\S*) nicht gefunden", r"module \1 not found"),
)  # fmt: skip


@functools.cache
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), english) for pattern, english in PHRASES)


def in_english(low: str) -> str:
    """A lower-case text with its German phrases in English, of as many lines as before."""
    if not HINT.search(low):
        return low
    for pattern, english in _compiled():
        low = pattern.sub(english, low)
    return low
