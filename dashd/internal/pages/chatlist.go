package pages

// ChatList is a part of a list of chats, the one seen last first.
type ChatList struct {
	Platforms      []string
	Platform, Text string // the filters
	Lines          []ChatRow
	Next           string // address of what follows, "" for nothing
	Bounded        bool   // the page ends because as many chats were looked at as one page may
	Later          bool   // it is not the beginning
	Now            int64
}

// Filtered reports whether a filter is set.
func (l ChatList) Filtered() bool { return l.Platform != "" || l.Text != "" }

// ChatRow is one chat. Times are unix ms, 0 for never.
type ChatRow struct {
	JID                 string // for addresses of pages
	Shown, Title        string
	Kind, Account       string
	SeenAt              int64
	Home, Pinned, Topic string    // the group that answers, the group and topic it is pinned to
	Open                int       // turns that are queued or running, at most 100
	Engaged             string    // the group of the window that ends last
	Until               int64     // when that ends
	Spend               SpendLine // what was used in the last 30 days
}

// Name is the chat's title, else its address.
func (c ChatRow) Name() string { return title(c.Title, c.Shown) }

// Engagement is the windows that are open, those that end first first.
type Engagement struct {
	Lines []WindowRow
	Next  string
	Later bool // it is not the beginning
	Now   int64
}

// WindowRow is an open window. Times are unix ms.
type WindowRow struct {
	JID, Place                       string // for forms and addresses of pages
	Shown, Title, PlaceShown, Folder string
	At, Until                        int64 // when its first message came, when it ends
}

// Name is the chat's title, else its address.
func (w WindowRow) Name() string { return title(w.Title, w.Shown) }

// Access is what a sender may do in a chat.
type Access struct {
	Chat, Sender, Name, Thread string // what was asked
	Chats                      []KnownChat
	Problem                    string        // why routd does not say
	Answer                     *AccessAnswer // nil before a question
	Operators                  Operators
}

// KnownChat is a chat that can be chosen.
type KnownChat struct{ JID, Title string }

// AccessAnswer is routd's answer in words.
type AccessAnswer struct {
	JID                       string // for addresses of pages
	Chat, Title, Kind, Sender string
	Operator                  bool
	Pinned                    string // the group that the chat is pinned to
	Rows                      []AccessRow
	// the chat's group, whom its access lists, and the groups the sender reaches by @name
	Home, Lists, Reaches string
	Admitted, Pins       bool // may use the group; may pin the chat
}

// ChatName is the chat's title, else its address.
func (a AccessAnswer) ChatName() string { return title(a.Title, a.Chat) }

// AccessRow is what becomes of one kind of message.
type AccessRow struct {
	Verb, Outcome, Folder string
	Starts                bool // it starts a turn
	Why                   []string
}
