package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Limits of the pages of a chat and of a person.
const (
	maxDetail      = 10 // lines of each list
	maxSenderChats = 50
)

// show shows everything about a chat.
func (c chatPages) show(r *http.Request) (*shown, error) {
	ctx, jid := r.Context(), strings.TrimPrefix(r.URL.Path, "/chats/")
	page := pages.OneChat{Now: c.Now().UnixMilli(), Fixed: msg.AddressedFolder(jid) != ""}
	messages, err := c.newestMessages(r, rows.MessageFilter{Chat: jid}, "chat", jid)
	if err != nil {
		return nil, err
	}
	page.Messages = messages
	chat, err := c.Store.Chat(ctx, jid)
	switch {
	case err != nil:
		return nil, err
	case chat == nil && len(messages.Lines) == 0:
		return nil, apierr.New(apierr.NotFound, "There is no chat %.80q.", jid)
	case chat == nil:
		chat = &msg.Chat{JID: jid, Kind: msg.KindOfJID(jid)}
	}
	platform, _, _ := strings.Cut(jid, ":")
	lines, err := c.chatRows(ctx, []rows.SeenChat{{Chat: *chat, Platform: platform}}, page.Now)
	if err != nil {
		return nil, err
	}
	page.ChatRow = lines[0]
	for _, fill := range []func(context.Context, *pages.OneChat) error{
		c.addTurns, c.addRoutes, c.addWindows, c.addReminders, c.addPolls,
	} {
		if err := fill(ctx, &page); err != nil {
			return nil, err
		}
	}
	if page.Request, err = factrows.PendingRequest(ctx, c.Store, jid); err == nil && page.Request == nil {
		page.Request, err = factrows.LastDecidedRequest(ctx, c.Store, jid)
	}
	return &shown{title: pages.Line(c.Pages.Hide(cmp.Or(page.Title, jid))), data: page}, err
}

// newestMessages are the first lines of a list, and the address of the whole list.
func (c *site) newestMessages(r *http.Request, f rows.MessageFilter, parameter, value string) (pages.Messages, error) {
	f.Limit = maxDetail
	list := pages.Messages{Now: c.Now().UnixMilli()}
	err := messagePages{c}.listInto(r, &list, f)
	if list.Next != "" {
		list.Next = messagesPath(parameter, value)
	}
	return list, err
}

func (c chatPages) addTurns(ctx context.Context, page *pages.OneChat) error {
	turns, err := c.Store.Turns(ctx, store.TurnList{ChatJID: page.JID, Limit: maxDetail + 1})
	if err != nil {
		return err
	}
	if page.Turns, err = c.turnLines(ctx, turns[:min(len(turns), maxDetail)]); len(turns) > maxDetail {
		page.Turns.Next = "/turns?" + url.Values{"chat": {page.JID}}.Encode()
	}
	return err
}

// addRoutes adds the routes that can match a message of the chat, up to the one that matches all of them.
func (c chatPages) addRoutes(ctx context.Context, page *pages.OneChat) error {
	t, err := c.table(ctx)
	if err != nil || page.Fixed {
		return err
	}
	anything := match.EventOf(page.JID, "", "", "\x00") // without a sender and a verb
	var places []int
	for i, route := range t.routes {
		expr, err := match.ParseMatch(route.Match)
		if err != nil || !expr.Reaches(&anything) {
			continue
		}
		places = append(places, i)
		if len(places) == maxDetail || expr.Matches(&anything) {
			break
		}
	}
	page.Routes.Rows, err = c.routeLines(ctx, t, places)
	return err
}

func (c chatPages) addWindows(ctx context.Context, page *pages.OneChat) error {
	stored, err := factrows.Engagements(ctx, c.Store, page.JID)
	page.Windows.Now = page.Now
	for _, e := range stored {
		open := e.Until > page.Now && e.At > max(e.EndedAt, page.StickyAt)
		if open && len(page.Windows.Lines) < maxDetail {
			page.Windows.Lines = append(page.Windows.Lines, rows.OpenWindow{Engagement: *e, Title: page.Title})
		}
	}
	return err
}

func (c chatPages) addReminders(ctx context.Context, page *pages.OneChat) error {
	found, err := factrows.Reminders(ctx, c.Store,
		factrows.ReminderList{State: msg.ReminderActive, ChatJID: page.JID, Limit: maxDetail + 1})
	if err != nil {
		return err
	}
	page.Reminders, err = upkeepPages(c).reminderLines(ctx, found[:min(len(found), maxDetail)])
	if len(found) > maxDetail {
		page.Reminders.Next = "/reminders?" + url.Values{"chat": {page.JID}}.Encode()
	}
	return err
}

func (c chatPages) addPolls(ctx context.Context, page *pages.OneChat) error {
	found, err := rows.ChatPolls(ctx, c.Store, page.JID, maxDetail)
	if err == nil {
		page.Polls, err = upkeepPages(c).pollLines(ctx, found)
	}
	return err
}

// person shows everything about a sender.
func (c chatPages) person(r *http.Request) (*shown, error) {
	ctx, id := r.Context(), strings.TrimPrefix(r.URL.Path, "/senders/")
	page := pages.Person{ID: id, Now: c.Now().UnixMilli()}
	var err error
	of := rows.MessageFilter{Sender: id, Direction: msg.In}
	if page.Messages, err = c.newestMessages(r, of, "sender", id); err != nil {
		return nil, err
	}
	if err := c.personChats(ctx, &page); err != nil {
		return nil, err
	}
	operators, err := facts.Operators(ctx, c.Store, c.Operators)
	if err != nil {
		return nil, err
	}
	page.Operator = id == msg.WebOperator || slices.Contains(operators, id)
	if page.Roles, err = c.personRoles(ctx, id); err != nil {
		return nil, err
	}
	if len(page.Chats)+len(page.Roles) == 0 && !page.Operator {
		return nil, apierr.New(apierr.NotFound, "No message of %.80q is stored, and no role names it.", id)
	}
	if page.Asked, err = rows.SenderAsked(ctx, c.Store, id, page.Now-time.Hour.Milliseconds()); err != nil {
		return nil, err
	}
	turns, err := rows.SenderTurns(ctx, c.Store, id, maxDetail)
	if err != nil {
		return nil, err
	}
	page.Turns, err = c.turnLines(ctx, turns)
	name := cmp.Or(append(page.Names, id)...)
	return &shown{title: pages.Line(c.Pages.Hide(name)), data: page}, err
}

// personChats adds where a sender wrote, and under which names.
func (c chatPages) personChats(ctx context.Context, page *pages.Person) error {
	found, err := rows.SenderChats(ctx, c.Store, page.ID, maxSenderChats)
	if err != nil {
		return err
	}
	if page.Titles, err = c.titles(ctx, chatsOf(found, func(f rows.SenderChat) string { return f.JID })); err != nil {
		return err
	}
	t, err := c.table(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Name != "" && !slices.Contains(page.Names, f.Name) {
			page.Names = append(page.Names, f.Name)
		}
		i := slices.IndexFunc(page.Chats, func(known pages.PersonChat) bool { return known.JID == f.JID })
		if i >= 0 {
			page.Chats[i].Count += f.Count
			continue
		}
		chat, err := c.Store.Chat(ctx, f.JID)
		if err != nil {
			return err
		}
		line := pages.PersonChat{SenderChat: f}
		if chat != nil {
			line.Home, err = t.homes.Of(ctx, c.Store, chat)
		}
		if err != nil {
			return err
		}
		line.Rate = t.members()[line.Home].Rate
		page.Chats = append(page.Chats, line)
	}
	return nil
}

// personRoles are the groups whose roles list a sender, with those.
func (c *site) personRoles(ctx context.Context, sender string) (all []pages.GroupRoles, err error) {
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range t.groups {
		roles := slices.DeleteFunc(t.members()[g.Folder].Roles.Lines(nil), func(line groupconfig.RoleLine) bool {
			return !slices.Contains(line.Role.Senders(), sender)
		})
		if len(roles) > 0 && len(all) < maxRows {
			all = append(all, pages.GroupRoles{Folder: g.Folder, Roles: roles})
		}
	}
	return all, nil
}
