package rows

import (
	"context"
	"fmt"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	RequestColumns = `SELECT r.code, r.chat_jid, r.kind, r.sender, r.sender_name, ifnull(nullif(c.title, ''), r.title), r.sample, r.thread_id,
		r.state, ifnull(r.folder, ''), ifnull(r.decided_by, ''), ifnull(r.decided_at, 0), r.reason, r.created_at
		FROM onboarding_requests r`
	RequestChat   = ` LEFT JOIN chats c ON c.jid = r.chat_jid`
	PendingOfChat = RequestColumns + ` INDEXED BY onboarding_pending` + RequestChat +
		` WHERE r.state = 'pending' AND r.chat_jid = ?`
	// Of a platform's direct chats the one with the sender's newest message.
	queryDirectChat = `SELECT c.jid FROM chats c JOIN messages m ON m.id = (SELECT max(i.id) FROM messages i INDEXED BY messages_chat
		WHERE i.chat_jid = c.jid AND i.direction = 'in')
		WHERE c.kind = 'dm' AND c.platform = ? AND m.sender = ? ORDER BY m.id DESC LIMIT 1`
)

// RequestState is the state of a request.
type RequestState string

// States of a request; all but pending are final.
const (
	RequestPending  RequestState = "pending"
	RequestApproved RequestState = "approved"
	RequestRejected RequestState = "rejected"
	RequestExpired  RequestState = "expired"
)

// Who decided a request, if it was no operator.
const (
	DecidedByRoutes = "routes" // a route was added that leads from the chat to a group, or elsewhere
	DecidedByTime   = "time"   // no operator decided in time
	DecidedByMove   = "move"   // the chat moved to an address that had a request already
)

// Request is one row of onboarding_requests: a chat without a group that asks to be connected.
// Times are unix ms. Sender, SenderName, Title and Sample were written by strangers.
type Request struct {
	Code       string
	ChatJID    string
	Kind       msg.ChatKind
	Sender     string
	SenderName string
	Title      string // of the chat, the present one where it is known
	Sample     string // the beginning of the message that asked
	ThreadID   string // where the chat asked
	State      RequestState
	Folder     string // of an approved request; of a pending one the folder that it is being approved into, else ""
	DecidedBy  string // an operator, or one of the constants; "" for a pending one that is not being approved
	DecidedAt  int64  // 0 while it is pending
	Reason     string // why it was rejected, in an operator's words
	CreatedAt  int64
}

// Noted reports whether an operator has approved the request, and the chat is not known to be
// connected yet.
func (r *Request) Noted() bool { return r.State == RequestPending && r.Folder != "" }

func scanRequest(scan store.Scan) (*Request, error) {
	var r Request
	err := scan(&r.Code, &r.ChatJID, &r.Kind, &r.Sender, &r.SenderName, &r.Title, &r.Sample, &r.ThreadID,
		&r.State, &r.Folder, &r.DecidedBy, &r.DecidedAt, &r.Reason, &r.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("scan request: %w", err)
	}
	return &r, nil
}

// ReadRequests runs a query of RequestColumns.
func ReadRequests(ctx context.Context, r store.Reader, query string, args ...any) ([]*Request, error) {
	return store.All(ctx, r, scanRequest, query, args...)
}

// PendingRequest returns a chat's pending request, by its present or a former address; nil if it has none.
func PendingRequest(ctx context.Context, r store.Reader, chatJID string) (*Request, error) {
	jid, err := r.Address(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	return store.First(ReadRequests(ctx, r, PendingOfChat, jid))
}

// LastDecidedRequest returns the newest request of a chat that is approved, rejected or expired, by
// the chat's present or a former address; nil if it has none.
func LastDecidedRequest(ctx context.Context, r store.Reader, chatJID string) (*Request, error) {
	jid, err := r.Address(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	return store.First(ReadRequests(ctx, r, RequestColumns+` INDEXED BY onboarding_chat`+RequestChat+
		` WHERE r.chat_jid = ? AND r.state <> 'pending'
			ORDER BY r.created_at DESC LIMIT 1`,
		jid))
}

// Requests returns the newest requests in a state, "" for all states; at most limit.
func Requests(ctx context.Context, r store.Reader, state RequestState, limit int) ([]*Request, error) {
	return ReadRequests(ctx, r, RequestColumns+` INDEXED BY onboarding_created`+RequestChat+` WHERE (?1 = '' OR r.state = ?1)
		ORDER BY r.created_at DESC LIMIT ?2+0`,
		state, limit)
}

// DirectChat returns the direct chat in which a user can be reached: that with the user's own
// address, else the one with the user's newest message. "" is none, also while the user blocks the bot.
func DirectChat(ctx context.Context, r store.Reader, sender string) (jid string, err error) {
	own, err := r.Chat(ctx, sender)
	switch {
	case err != nil:
		return "", err
	case own != nil && own.Kind == msg.ChatDM:
		jid = sender
	default:
		platform, _ := msg.SplitJID(sender)
		if _, err = r.Get(ctx, []any{&jid}, queryDirectChat, platform, sender); err != nil || jid == "" {
			return "", err
		}
	}
	last := ""
	if _, err = r.Get(ctx, []any{&last}, `SELECT verb FROM messages INDEXED BY messages_chat WHERE chat_jid = ? AND direction = 'in' ORDER BY id DESC LIMIT 1`,
		jid); err != nil || last == msg.VerbLeave {
		return "", err
	}
	return jid, nil
}
