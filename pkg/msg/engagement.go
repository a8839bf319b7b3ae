package msg

// Engagement is a place of a chat in which a group answers without being
// called. Times are unix milliseconds.
type Engagement struct {
	ChatJID   string
	Place     string
	Folder    string // who answers, "" for nobody
	Until     int64  // the window is open for what comes before
	At        int64  // when the mention or the word came that the window began with
	LastReply int64  // row id of the reply that slid it last, 0 for none
	EndedAt   int64  // when it was ended by word, 0 for never
}

// Open reports whether the window is open for what comes at a time. One that
// began before its end by word, or the chat's pin to a group, is not.
func (e Engagement) Open(at, pinnedAt int64) bool {
	return e.Folder != "" && at < e.Until && e.At > max(e.EndedAt, pinnedAt)
}
