package reminders

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLocalZone_IsNamed_WhereTheMachineSaysIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for target, want := range map[string]string{
		"/usr/share/zoneinfo/Europe/Berlin": "Europe/Berlin", "../usr/share/zoneinfo/Etc/UTC": "Etc/UTC",
		"/usr/share/zoneinfo/Mars": unnamed, "/elsewhere/Europe/Berlin": unnamed,
	} {
		link := filepath.Join(dir, filepath.Base(target)+want[:1])
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if got := localZone(unnamed, link); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if got := localZone("Asia/Tokyo", link); got != "Asia/Tokyo" {
			t.Errorf("with TZ: %s", got)
		}
	}
	if got := localZone(unnamed, filepath.Join(dir, "missing")); got != unnamed {
		t.Errorf("without a link: %s", got)
	}
	if _, err := ParseZone(LocalZone()); err != nil {
		t.Error(err)
	}
}

func TestZoneText_HasNameOrOffset(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.FixedZone("", 2*3600))
	if got := ZoneText("America/New_York", at); got != "America/New_York" {
		t.Error(got)
	}
	if got := ZoneText(unnamed, at); got == unnamed {
		t.Error(got)
	}
	for want, at := range map[string]time.Time{"UTC+02:00": at, "UTC": at.UTC(), "UTC-03:30": at.In(time.FixedZone("", -3*3600-1800))} {
		if got := offsetText(at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
