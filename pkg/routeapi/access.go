package routeapi

import (
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// AccessPath answers with a sender's rights in a chat, by GET with the parameters jid, sender, sender_name
// and thread_id. Nothing is changed by asking.
const AccessPath = "/v1/access"

// Access is the answer: a sender's rights in a chat, and why.
type Access struct {
	ChatJID  string       `json:"chat_jid"` // the present address
	Kind     msg.ChatKind `json:"kind"`
	Sender   string       `json:"sender"`
	Operator bool         `json:"operator"` // may do everything
	Admin    bool         `json:"admin"`    // administers the chat, as far as its platform has said so
	Pinned   string       `json:"pinned"`   // the group that the chat is pinned to, "" for none
	Home     *HomeAccess  `json:"home"`     // the chat's group; null if it has none
	Rows     []RowAccess  `json:"rows"`     // by verb
}

// Members returns the rights of a group's members as they are for the sender.
func (a *Access) Members(m groupconfig.Members) groupconfig.Members {
	if a.Admin {
		m.Admin = a.Sender
	}
	return m
}

// HomeAccess are the sender's rights on the chat's group besides writing to it.
type HomeAccess struct {
	Folder   string            `json:"folder"`
	Roles    groupconfig.Roles `json:"roles"`    // as in its config
	Admitted bool              `json:"admitted"` // may use the group, and /new, /stop and /status
	Reaches  []string          `json:"reaches"`  // other groups, by @name
	Pins     bool              `json:"pins"`     // may pin the chat to a group or topic
}

// RowAccess is the decision on a message.
type RowAccess struct {
	Verb     string `json:"verb"`
	Answer   Answer `json:"answer"`
	Admitted bool   `json:"admitted"` // by the role ask of the group that gets it; true if none does
	Rate     int    `json:"rate"`     // turns an hour of that group; 0 is no limit
}
