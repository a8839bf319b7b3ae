package msg

// Engagement is a place of a chat in which a group answers without being
// called. Times are unix milliseconds.
type Engagement struct {
	ChatJID   string
	Place     string
	Folder    string // the group that answers, "" for none
	Until     int64  // the window is open for messages before this time
	At        int64  // when the mention or command that opened the window arrived
	LastReply int64  // row id of the reply that extended it last, 0 for none
	EndedAt   int64  // when it was ended on request, 0 for never
}

// Open reports whether the window is open for a message that arrived at a time.
// It is not if it began before it was ended on request, or before the chat was
// pinned to a group.
func (e Engagement) Open(at, pinnedAt int64) bool {
	return e.Folder != "" && at < e.Until && e.At > max(e.EndedAt, pinnedAt)
}
