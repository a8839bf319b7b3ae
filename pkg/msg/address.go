package msg

import "strings"

// Address is the group that answers and where its answers go. One agent process
// serves one address. Its projections are addresses too, with the other fields
// empty.
type Address struct {
	Folder   string
	ChatJID  string
	Topic    string
	ThreadID string
}

// Session returns the unit that at most one agent process works on.
func (a Address) Session() Address { return Address{Folder: a.Folder, Topic: a.Topic} }

// Conversation returns the unit that keeps its order: its turns are answered one after another,
// also when one is retried.
func (a Address) Conversation() Address {
	return Address{Folder: a.Folder, ChatJID: a.ChatJID, Topic: a.Topic}
}

// Lane names the line in which a turn of the address waits, as the column
// turns.lane does: the group's, or one for a topic of its web chat. A delegated turn
// waits in the group's, wherever it answers.
func (a Address) Lane(kind TurnKind) string {
	if platform, _ := SplitJID(a.ChatJID); platform == PlatformWeb && kind != Delegated {
		return a.Folder + " " + a.Topic // a folder has no space
	}
	return a.Folder
}

// FolderOfLane is the folder of the group in whose lane a turn waits.
func FolderOfLane(lane string) string {
	folder, _, _ := strings.Cut(lane, " ")
	return folder
}
