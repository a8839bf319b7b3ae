package routeapi

import (
	"fmt"
	"strings"
	"unicode"

	"arizuko/pkg/msg"
)

// Onboarding is the target of a route that opens a request to connect the chat. It needs no DAEMONS
// entry.
const Onboarding = "daemon:onbod"

// ApprovalPath is the endpoint of routd that connects a chat to a group.
const ApprovalPath = "/v1/approvals"

// Approval asks to connect a chat without a group. The group is registered if it is not; the same
// request again changes nothing.
type Approval struct {
	Code    string       `json:"code"` // of the chat's request, for the log
	ChatJID string       `json:"chat_jid"`
	Kind    msg.ChatKind `json:"kind"` // "" is guessed from the address
	Folder  string       `json:"folder"`
	By      string       `json:"by"` // the operator, for the log
}

// CheckChat returns the problem of a chat that no route can connect, and its kind: "" is guessed from
// the address.
func CheckChat(jid string, kind msg.ChatKind) (msg.ChatKind, error) {
	platform, room := msg.SplitJID(jid)
	switch {
	case platform == "" || room == "" || len(jid) > MaxField/2 || strings.ContainsFunc(jid, unicode.IsSpace):
		return "", fmt.Errorf("chat_jid %.80q is not platform:room, without white space", jid)
	case msg.AddressedFolder(jid) != "":
		return "", fmt.Errorf("the address %.80s names its group, it is connected by registering that", jid)
	}
	switch kind {
	case "":
		return msg.KindOfJID(jid), nil
	case msg.ChatDM, msg.ChatGroup, msg.ChatChannel:
		return kind, nil
	}
	return "", fmt.Errorf("kind %.80q is not dm, group or channel", kind)
}

// Approved is the answer.
type Approved struct {
	ChatJID string      `json:"chat_jid"` // the present address, if the chat was moved
	Folder  string      `json:"folder"`
	Created bool        `json:"created"` // the group is new
	Routes  []msg.Route `json:"routes"`  // those added, none if they were there
	// Shared are the match expressions of other routes that lead to the group, "" being everything:
	// their chats share its files and sessions. Of many the first 20.
	Shared []string `json:"shared"`
}
