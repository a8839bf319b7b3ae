package api

import (
	"cmp"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/routd/internal/routing"
)

func (a *API) getAccess(r *http.Request) (*httpx.Answer, error) {
	query := r.URL.Query()
	item := routeapi.Item{
		ChatJID: query.Get("jid"), Sender: query.Get("sender"), SenderName: query.Get("sender_name"),
		ThreadID: query.Get("thread_id"), ReceivedAt: a.Now().UnixMilli(),
	}
	item.Topic = item.ThreadID
	if platform, user := msg.SplitJID(item.Sender); platform == "" || user == "" {
		return nil, apierr.New(apierr.BadRequest, "sender %.80q is not platform:user", item.Sender)
	}
	if err := checkJID(item.ChatJID); err != nil {
		return nil, err
	}
	if err := a.loadChat(r, &item); err != nil {
		return nil, a.unreadable(err)
	}
	operators, err := a.Store.Operators(r.Context(), a.Operators)
	if err != nil {
		return nil, a.unreadable(err)
	}
	table := a.Loader.Table()
	result := routeapi.Access{
		ChatJID: item.ChatJID, Kind: item.Kind, Sender: item.Sender, Pinned: item.StickyGroup,
		Operator: msg.IsOperator(operators, item.ChatJID, item.Sender),
	}
	if result.Admin, err = a.Store.IsAdmin(r.Context(), item.ChatJID, item.Sender); err != nil {
		return nil, a.unreadable(err)
	}
	for i, verb := range match.WrittenVerbs() {
		item.ID, item.Verb = int64(i+1), verb
		row, err := a.rowAccess(r, table, &item, &result)
		if err != nil {
			return nil, err
		}
		result.Rows = append(result.Rows, row)
		if result.Home == nil {
			result.Home = homeOf(table, row.Answer.Home, &result)
		}
	}
	return &httpx.Answer{Status: http.StatusOK, Body: result}, nil
}

// loadChat replaces a former address of the chat, and adds its kind and pin.
func (a *API) loadChat(r *http.Request, item *routeapi.Item) (err error) {
	if item.ChatJID, err = a.Store.Address(r.Context(), item.ChatJID); err != nil {
		return err
	}
	item.Kind = msg.KindOfJID(item.ChatJID)
	chat, err := a.Store.Chat(r.Context(), item.ChatJID)
	if err != nil || chat == nil {
		return err
	}
	item.Kind, item.StickyGroup = cmp.Or(chat.Kind, item.Kind), chat.StickyGroup
	return nil
}

// rowAccess decides on one message alone: its claims don't count for others.
func (a *API) rowAccess(r *http.Request, table *routing.Table, item *routeapi.Item, of *routeapi.Access) (
	routeapi.RowAccess, error) {
	engaged := a.Engagement.Snapshot()
	row := routeapi.RowAccess{Verb: item.Verb, Answer: decideOne(r.Context(), table, item, engaged), Admitted: true}
	if err := engaged.Err(); err != nil {
		return routeapi.RowAccess{}, a.unreadable(err)
	}
	if row.Answer.Error != "" {
		return routeapi.RowAccess{}, apierr.New(apierr.BadRequest, "%s", row.Answer.Error)
	}
	if m, ok := table.Members(row.Answer.Folder); ok {
		row.Admitted, row.Rate = of.Members(m).Admits(of.Sender, of.Operator), m.Rate
	}
	if of.Operator {
		row.Rate = 0
	}
	return row, nil
}

// homeOf returns nil for a chat without a group.
func homeOf(table *routing.Table, folder string, of *routeapi.Access) *routeapi.HomeAccess {
	m, ok := table.Members(folder)
	if !ok {
		return nil
	}
	h := &routeapi.HomeAccess{
		Folder: folder, Roles: m.Roles, Admitted: of.Members(m).Admits(of.Sender, of.Operator),
		Reaches: table.Reachable(folder, of.Sender, of.Operator, of.Members),
	}
	if h.Reaches == nil {
		h.Reaches = []string{} // [] rather than null
	}
	h.Pins = h.Admitted && (of.Operator || !m.NoPins)
	return h
}
