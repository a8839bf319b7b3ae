package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// show explains a sender's permissions in a chat.
func (c accessPages) show(r *http.Request) (*shown, error) {
	q, ctx := r.URL.Query(), r.Context()
	page := pages.Access{Chat: strings.TrimSpace(q.Get("chat")), Sender: strings.TrimSpace(q.Get("sender")),
		Name: q.Get("name"), Thread: q.Get("thread")}
	var err error
	if page.Operators, err = c.operators(ctx); err != nil {
		return nil, err
	}
	chats, err := rows.ListChats(ctx, c.Store, rows.ChatFilter{Limit: maxRows})
	if err != nil {
		return nil, err
	}
	page.Chats = chats.Rows
	if err = c.groupRoles(r, &page); err != nil {
		return nil, err
	}
	if page.Chat != "" && page.Sender != "" {
		query := url.Values{"jid": {page.Chat}, "sender": {page.Sender}, "sender_name": {page.Name},
			"thread_id": {page.Thread}}
		answer := new(routeapi.Access)
		if refused := c.ask(ctx, "routd", http.MethodGet, routeapi.AccessPath+"?"+query.Encode(), nil,
			answer); refused != nil {
			page.Problem = plainText(refused.Error())
		} else {
			page.Answer = answer
			page.Titles, err = c.titles(ctx, []string{answer.ChatJID})
		}
	}
	return &shown{data: page}, err
}

// groupRoles reads the roles of a page of groups.
func (c accessPages) groupRoles(r *http.Request, page *pages.Access) error {
	t, err := c.table(r.Context())
	if err != nil {
		return err
	}
	for _, g := range t.groups {
		if g.Folder <= r.URL.Query().Get("after") {
			continue
		}
		if len(page.Groups) == maxRows {
			page.Next = below(r, "after", page.Groups[maxRows-1].Folder)
			break
		}
		page.Groups = append(page.Groups, pages.GroupRoles{Folder: g.Folder,
			Roles: t.members()[g.Folder].Roles.Lines(nil)})
	}
	return nil
}

// parseRole is the setting that a field of a form stands for, nil for the default.
func parseRole(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, nil
	case text == groupconfig.Everyone || text == groupconfig.Operators:
		return text, nil
	case text[0] != '[':
		var list []string // an entry may have a space: platform admins
		for entry := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' }) {
			list = append(list, strings.TrimSpace(entry))
		}
		return slices.DeleteFunc(list, func(entry string) bool { return entry == "" }), nil
	}
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, apierr.New(apierr.BadRequest, "%.200s is no JSON list: %w", text, err)
	}
	return list, nil
}

// operators are those of the instance: whom OPERATORS names, and who became one by a code.
func (c *site) operators(ctx context.Context) (pages.Operators, error) {
	all := pages.Operators{Now: c.Now().UnixMilli()}
	for _, entry := range c.Operators {
		shown, err := c.withName(ctx, strings.TrimSpace(entry))
		if err != nil {
			return all, err
		}
		all.Named = append(all.Named, shown)
		if problem := config.OperatorProblem(entry); problem != "" {
			all.Invalid = append(all.Invalid, pages.Line(entry+" "+problem))
		}
	}
	made, err := c.Store.MadeOperators(ctx)
	for _, o := range made {
		shown, err := c.withName(ctx, o.Sender)
		if err != nil {
			return all, err
		}
		all.Made = append(all.Made, pages.MadeOperator{MadeOperator: o, Shown: shown})
	}
	return all, err
}

// withName is a sender's id, with the name of the newest message of that sender.
func (c *site) withName(ctx context.Context, sender string) (string, error) {
	name, err := c.Store.SenderName(ctx, sender)
	if err != nil || name == "" {
		return pages.Line(sender), err
	}
	return pages.Line(sender) + ", " + pages.Line(name), nil
}

// makeOperatorCode asks gated for a code, and shows it once. The page that asked for it says from.
func (c accessPages) makeOperatorCode(r *http.Request) (next, notice string, err error) {
	next = "/access"
	if r.PostForm.Get("from") == "/" {
		next = "/"
	}
	var made struct {
		Code      string `json:"code"`
		ExpiresAt int64  `json:"expires_at"` // unix ms
	}
	if err := c.ask(r.Context(), "gated", http.MethodPost, "/v1/operators/code", nil, &made); err != nil {
		return next, "", err
	}
	left := time.Duration(made.ExpiresAt-c.Now().UnixMilli()) * time.Millisecond
	return next, fmt.Sprintf("Write %s to the bot in a direct chat within %d minutes. It works once, for the user who "+
		"writes it, and is not shown again.",
		msg.CommandAnywhere(msg.CommandOperator+" "+made.Code), int(left.Round(time.Minute).Minutes())), nil
}

// removeOperator asks gated to end the role that came of a code.
func (c accessPages) removeOperator(r *http.Request) (next, notice string, err error) {
	sender := strings.TrimSpace(r.PostForm.Get("sender"))
	err = c.ask(r.Context(), "gated", http.MethodPost, "/v1/operators/remove",
		map[string]string{"sender": sender}, nil)
	return "/access", fmt.Sprintf("%s is no longer an operator.", pages.Line(sender)), err
}
