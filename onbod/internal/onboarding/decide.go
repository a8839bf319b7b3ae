package onboarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"arizuko/pkg/apierr"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// LocalOperator is an operator at a terminal of the machine: who can read the shared secret is one.
const LocalOperator = "local:operator"

// Approval is an operator's wish to connect a chat.
type Approval struct {
	Code   string `json:"code"`
	Folder string `json:"folder"` // "" for a new group named after the chat
	By     string `json:"by"`     // one of OPERATORS, web:<login>, or LocalOperator
}

// Rejection is an operator's wish not to.
type Rejection struct {
	Code   string `json:"code"`
	Reason string `json:"reason"` // shown in the chat, may be ""
	By     string `json:"by"`
}

// Decided is how a request stands.
type Decided struct {
	Code      string             `json:"code"`
	State     store.RequestState `json:"state"` // pending if routd has not answered yet
	Folder    string             `json:"folder"`
	DecidedBy string             `json:"decided_by"`
	Text      string             `json:"text"` // for the operator, markdown
}

// Approve connects a request's chat to a group. It returns forbidden for others than operators,
// bad_request for an invalid folder, not_found for an unknown code, conflict if the request is
// decided, or cannot be approved now.
func (o *Onboarding) Approve(ctx context.Context, a Approval) (Decided, error) {
	if a.Folder = strings.TrimSpace(a.Folder); a.Folder != "" {
		if err := msg.ValidFolder(a.Folder); err != nil {
			return Decided{}, apierr.New(apierr.BadRequest, "%w", err)
		}
	}
	r, unlock, err := o.open(ctx, a.Code, a.By)
	if err != nil {
		return Decided{}, err
	}
	defer unlock()
	first := !r.Noted()
	switch {
	case !first && a.Folder != "" && a.Folder != r.Folder:
		return Decided{}, inProgress(r)
	case first:
		if a.Folder == "" {
			folders, err := o.DefaultFolders(ctx, r)
			if err != nil {
				return Decided{}, err
			}
			a.Folder = folders[r.Code]
		}
		err := o.st.Write(ctx, func(tx *store.Tx) error { return tx.NoteApproval(r.Code, a.Folder, a.By) })
		if err != nil {
			return Decided{}, err
		}
		r.Folder, r.DecidedBy = a.Folder, a.By
	}
	// From here on it goes on without the caller, who may have ended.
	d, err := o.connect(context.WithoutCancel(ctx), r, first)
	if errors.Is(err, errUnanswered) {
		o.wake()
		return Decided{r.Code, r.State, r.Folder, r.DecidedBy, fmt.Sprintf(
			"Request %s is approved. %s is connected to the group %s as soon as routd answers.", r.Code, chatName(r), r.Folder)}, nil
	}
	return d, err
}

// Reject ends a request, and says so in its chat. Its errors are those of Approve.
func (o *Onboarding) Reject(ctx context.Context, rej Rejection) (Decided, error) {
	r, unlock, err := o.open(ctx, rej.Code, rej.By)
	if err != nil {
		return Decided{}, err
	}
	defer unlock()
	if r.Noted() {
		return Decided{}, inProgress(r)
	}
	reason, now := clean(rej.Reason, maxReason), o.now()
	err = o.st.Write(ctx, func(tx *store.Tx) error {
		d := store.RequestDecision{State: store.RequestRejected, By: rej.By, Reason: reason}
		if err := tx.DecideRequest(r.Code, d, now); err != nil {
			return err
		}
		if err := tx.PutAudit(rej.By, "reject", r.Code+" "+r.ChatJID, now); err != nil {
			return err
		}
		return o.notify(tx, r.ChatJID, r.ThreadID, rejectedNotice(r, reason))
	})
	if err != nil {
		return Decided{}, err
	}
	o.results.WithLabelValues("rejected").Inc()
	o.log.Info("request rejected", "chat", r.ChatJID, "user", rej.By)
	text := fmt.Sprintf("Request %s is rejected. %s may ask again after a day.", r.Code, chatName(r))
	return Decided{r.Code, store.RequestRejected, "", rej.By, text}, nil
}

// open finds a pending request for an operator to decide. Until the caller calls unlock no other is
// decided.
func (o *Onboarding) open(ctx context.Context, code, by string) (r *store.Request, unlock func(), err error) {
	if !o.isOperator(by) {
		return nil, nil, apierr.New(apierr.Forbidden, "%.80q is not an operator", by)
	}
	if unlock, err = o.lock(ctx); err != nil {
		return nil, nil, err
	}
	r, err = o.st.Request(ctx, normalCode(code))
	switch {
	case err != nil:
	case r == nil:
		err = apierr.New(apierr.NotFound, "there is no request %.20q", strings.TrimSpace(code))
	case r.State != store.RequestPending:
		err = apierr.New(apierr.Conflict, "%s", decidedText(r))
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return r, unlock, nil
}

// isOperator trusts the caller, who knows the shared secret, with the name of a login.
func (o *Onboarding) isOperator(by string) bool {
	platform, login := msg.SplitJID(by)
	return o.cfg.Operators[by] || by == LocalOperator || platform == msg.PlatformWeb && login != ""
}

func inProgress(r *store.Request) error {
	return apierr.New(apierr.Conflict, "request %s is being approved by %s into the group %s; that waits for routd", r.Code, r.DecidedBy, r.Folder)
}

// errUnanswered means that routd may have connected the chat, or not. Asking again is safe.
var errUnanswered = errors.New("routd has not answered")

// refusedError means that routd has changed nothing.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// Refused marks an error of Routd.Connect: nothing was changed by this call.
func Refused(err error) error { return refusedError{err} }

// connect finishes the approval of a request that is noted. It returns errUnanswered, or an error for
// the operator once the approval is taken back. first: routd was not asked before. Of a later time only
// its own answer says that nothing was changed, since an earlier one may have arrived. The caller
// holds the lock.
func (o *Onboarding) connect(ctx context.Context, r *store.Request, first bool) (Decided, error) {
	ask, cancel := context.WithTimeout(ctx, routdTimeout)
	defer cancel()
	done, err := o.routd.Connect(ask, routeapi.Approval{Code: r.Code, ChatJID: r.ChatJID, Kind: r.Kind, Folder: r.Folder, By: r.DecidedBy})
	kind := apierr.KindOf(err)
	switch {
	case errors.As(err, new(refusedError)) && (first || kind == apierr.BadRequest || kind == apierr.Conflict):
		o.log.Warn("chat not connected", "chat", r.ChatJID, "folder", r.Folder, "user", r.DecidedBy, "err", err)
		if undo := o.st.Write(ctx, func(tx *store.Tx) error { return tx.WithdrawApproval(r.Code) }); undo != nil {
			return Decided{}, undo
		}
		return Decided{}, stillPending(r, err)
	case err != nil:
		level := slog.LevelDebug // one line for an approval, not one for each try
		if first {
			level = slog.LevelWarn
		}
		o.log.Log(ctx, level, "approval waits for routd", "chat", r.ChatJID, "folder", r.Folder, "err", err)
		return Decided{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	failpoint.At(failpoint.Connected)
	return o.finish(ctx, r, done)
}

// stillPending says why a chat was not connected. It is no unavailable: the caller would take it for
// an answer of a service that is down.
func stillPending(r *store.Request, cause error) error {
	kind := apierr.KindOf(cause)
	if kind != apierr.BadRequest && kind != apierr.Conflict {
		return apierr.New(apierr.Conflict, "request %s is still pending: routd, which makes groups and routes, does not answer. "+
			"Start it, and approve again", r.Code)
	}
	return apierr.New(kind, "request %s is still pending: %w", r.Code, cause)
}

// finish stores that a chat is connected, with the greeting.
func (o *Onboarding) finish(ctx context.Context, r *store.Request, done routeapi.Approved) (Decided, error) {
	now := o.now()
	err := o.st.Write(ctx, func(tx *store.Tx) error {
		d := store.RequestDecision{State: store.RequestApproved, Folder: r.Folder, By: r.DecidedBy}
		if err := tx.DecideRequest(r.Code, d, now); err != nil {
			return err
		}
		if err := tx.PutAudit(r.DecidedBy, "approve", r.Code+" "+done.ChatJID+" "+r.Folder, now); err != nil {
			return err
		}
		return o.notify(tx, done.ChatJID, r.ThreadID, greeting(r))
	})
	if err != nil {
		return Decided{}, err
	}
	o.results.WithLabelValues("approved").Inc()
	o.log.Info("request approved", "chat", done.ChatJID, "folder", r.Folder, "user", r.DecidedBy)
	text, err := o.approvedText(ctx, r, done)
	if err != nil { // it is approved all the same
		o.log.Error("chats of a group not read for the answer to an approval", "chat", done.ChatJID, "folder", r.Folder, "err", err)
		text = fmt.Sprintf("Connected %s to the group %s.", chatName(r), r.Folder)
	}
	return Decided{r.Code, store.RequestApproved, r.Folder, r.DecidedBy, text}, nil
}

// approvedText says what a chat was connected to, and which chats share the group.
func (o *Onboarding) approvedText(ctx context.Context, r *store.Request, done routeapi.Approved) (string, error) {
	if done.Created {
		return fmt.Sprintf("Connected %s to the new group %s.", chatName(r), r.Folder), nil
	}
	text := fmt.Sprintf("Connected %s to the group %s, which is there already.", chatName(r), r.Folder)
	var others []string
	for _, expr := range done.Shared {
		other, err := o.sharer(ctx, expr)
		if err != nil {
			return "", err
		}
		if other != "" && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return text + " It uses the files and sessions that are there.", nil
	}
	return text + " It shares files and sessions with " + strings.Join(others, ", ") + ".", nil
}

// sharer describes whose messages a route leads to the group.
func (o *Onboarding) sharer(ctx context.Context, expr string) (string, error) {
	if expr == "" {
		return "all chats", nil
	}
	for word := range strings.FieldsSeq(expr) {
		jid, ok := strings.CutPrefix(word, "chat_jid=")
		if !ok || strings.ContainsAny(jid, `*?[\`) {
			continue
		}
		chat, err := o.st.Chat(ctx, jid)
		if err != nil {
			return "", err
		}
		if chat == nil || chat.Title == "" {
			return quoted(jid), nil
		}
		return fmt.Sprintf("%s (%s)", quoted(chat.Title), quoted(jid)), nil
	}
	return "messages that match " + quoted(expr), nil
}
