package reminders

import (
	"os"
	"strings"
	"time"
)

// unnamed is the name of time.Local where TZ is not set.
const unnamed = "Local"

// LocalZone is the name of this machine's time zone: that of TZ, or the one that /etc/localtime links to. It is
// "Local", which is loaded like a name, if neither is known.
func LocalZone() string { return localZone(time.Local.String(), "/etc/localtime") }

func localZone(name, link string) string {
	if name != unnamed {
		return name
	}
	target, err := os.Readlink(link)
	if err != nil {
		return unnamed // a copied file, or none
	}
	_, zone, found := strings.Cut(target, "/zoneinfo/")
	if !found {
		return unnamed
	}
	if _, err := ParseZone(zone); err != nil {
		return unnamed
	}
	return zone
}

// ZoneText is a time zone as users and agents read it: its name or, if it has none, its offset at a time, as
// in UTC+02:00.
func ZoneText(name string, at time.Time) string {
	if name == unnamed {
		name = LocalZone()
	}
	if name != unnamed {
		return name
	}
	return offsetText(at)
}

func offsetText(at time.Time) string {
	if _, offset := at.Zone(); offset == 0 {
		return "UTC"
	}
	return "UTC" + at.Format("-07:00")
}
