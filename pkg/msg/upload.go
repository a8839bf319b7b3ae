package msg

// How large a file a bot may send, in bytes, from the documentation of each platform. The web chat shows files of the
// media folder, and takes what the others do.
const (
	maxUploadTelegram = 50 << 20
	maxUploadLocal    = 2000 << 20 // a server of the Bot API that is run with --local
	MaxUploadDiscord  = 10 << 20   // in guilds without boosts
	MaxUploadSlack    = 1 << 30
	// MaxFile bounds a file that an agent sends, on any platform.
	MaxFile = 100 << 20
)

// LocalServer is the cursor that an adapter of Telegram has while its server is run with --local.
const LocalServer = "local server"

// PrivacyMode is the cursor that an adapter of Telegram has while its bot receives commands, mentions and replies alone
// in groups where it is no administrator.
const PrivacyMode = "privacy mode"

// MaxUploadTelegram is how large a file a server of the Bot API takes, in bytes.
func MaxUploadTelegram(local bool) int64 {
	if local {
		return maxUploadLocal
	}
	return maxUploadTelegram
}

// MaxUpload is the size of the largest file that an agent can send into a chat, in bytes. local says that the server
// of a chat of Telegram is run with --local.
func MaxUpload(chatJID string, local bool) int64 {
	switch FamilyOf(chatJID) {
	case "telegram":
		return min(MaxUploadTelegram(local), MaxFile)
	case "discord":
		return MaxUploadDiscord
	}
	return MaxFile
}
