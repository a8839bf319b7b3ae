package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

// checkHooks finds hooks that take no deliveries, and those whose answers go nowhere. routd reports invalid ones.
func checkHooks(ctx context.Context, e *examination, routes []msg.Route) error {
	for _, g := range e.groups {
		c, _ := groupconfig.Parse(g.Config)
		for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
			_, h, ok := groupconfig.ReadHook(g.Config, c.Hooks[name].ID)
			if !ok || h.Off {
				continue
			}
			title := fmt.Sprintf("webhook %s of group %s", name, g.Folder)
			if h.To != "" && !routecheck.Routed(routes, routecheck.Registered(e.groups), h.To, "", g.Folder) {
				e.Warn("hook-to", "no route leads from "+h.To+" to the group: only the dashboard shows the answers of "+
					title, "`routd routes add --match chat_jid="+h.To+" --target "+g.Folder+
					"`, or change the webhook in the group's config")
			}
			if err := checkDeliveries(ctx, e, title, g.Folder, h.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDeliveries warns of a hook that refuses its deliveries.
func checkDeliveries(ctx context.Context, e *examination, title, folder, id string) error {
	rotate, jid := "`routd hooks rotate "+folder+"."+id+"`", msg.HookJID(folder, id)
	if _, err := hooks.Secrets(e.Base.Data, id, e.Now()); errors.Is(err, fs.ErrNotExist) {
		e.Warn("hook-secret", title+" has no secret: it refuses its deliveries",
			rotate+" makes one: give it to the sender")
		return nil
	}
	refusals, err := rows.HookRefusals(ctx, e.st.Reader, jid)
	if err != nil || len(refusals) == 0 {
		return err
	}
	accepted, err := rows.LastHookDelivery(ctx, e.st.Reader, jid)
	if err == nil && refusals[0].At > accepted {
		e.Warn("hook-refused", title+" refused its last delivery: "+refusals[0].Reason,
			"give the sender the right secret, or make a new one with "+rotate)
	}
	return err
}
