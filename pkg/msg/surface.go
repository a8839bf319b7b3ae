package msg

// Surface is where a reply will be read: a hint to the agent about length.
// Ceiling is in characters and is never enforced.
type Surface struct {
	Name    string
	Ceiling int
}

// Ceilings in characters: of a direct chat or a thread, of a room shared with
// others, and of the top level of a channel, where most members do not follow.
const (
	fullCeiling    = 4000
	defaultCeiling = 1500
	hardCeiling    = 200
)

// SurfaceOf computes the surface of a chat's thread. A Slack DM with a thread
// is an assistant pane.
func SurfaceOf(jid string, kind ChatKind, threadID string) Surface {
	platform := FamilyOf(jid)
	threaded := threadID != ""
	switch platform {
	case PlatformWeb:
		return Surface{"web", fullCeiling}
	case PlatformGroup:
		return Surface{"group", fullCeiling}
	case PlatformHook:
		return Surface{"hook", fullCeiling}
	case "slack":
		switch {
		case kind == ChatDM && threaded:
			return Surface{"slack-pane", fullCeiling}
		case kind == ChatDM:
			return Surface{"slack-dm", fullCeiling}
		case threaded:
			return Surface{"slack-channel-thread", fullCeiling}
		}
		return Surface{"slack-channel", hardCeiling}
	}
	return messengerSurface(platform, kind, threaded)
}

// messengerSurface is for messengers, those of foreign adapters included.
func messengerSurface(platform string, kind ChatKind, threaded bool) Surface {
	thread, room := "thread", "group"
	switch platform {
	case "telegram":
		thread = "topic"
	case "discord":
		room = "channel"
	}
	switch {
	case kind == ChatDM:
		return Surface{platform + "-dm", fullCeiling}
	case threaded:
		return Surface{platform + "-" + thread, fullCeiling}
	}
	return Surface{platform + "-" + room, defaultCeiling}
}
