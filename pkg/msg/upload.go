package msg

// How large a file a bot may send, in bytes, from the documentation of each platform. The web chat shows files of the
// media folder, and takes what the others do.
const (
	MaxUploadTelegram = 50 << 20
	MaxUploadDiscord  = 10 << 20 // in guilds without boosts
	MaxUploadSlack    = 1 << 30
	// MaxFile bounds a file that an agent sends, on any platform.
	MaxFile = 100 << 20
)

// MaxUpload is the size of the largest file that an agent can send into a chat of a platform, in bytes.
func MaxUpload(platform string) int64 {
	switch platform {
	case "telegram":
		return MaxUploadTelegram
	case "discord":
		return MaxUploadDiscord
	}
	return MaxFile
}
