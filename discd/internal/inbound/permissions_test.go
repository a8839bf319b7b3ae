package inbound

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

func TestGuilds_Admins(t *testing.T) {
	known, me := NewGuilds(), Self{Platform: "discord", ID: "99"}
	known.Learn(&discordapi.Update{Guild: &discordapi.Guild{ID: "5", Name: "Guild", OwnerID: "1", Roles: []discordapi.Role{
		{ID: "5", Permissions: discordapi.ViewChannel}, {ID: "50", Permissions: discordapi.ManageGuild},
		{ID: "51", Permissions: discordapi.Administrator}, {ID: "52", Permissions: discordapi.SendMessages},
	}}}, me)
	known.Learn(&discordapi.Update{Guild: &discordapi.Guild{ID: "6", Unavailable: true}}, me)
	roles := func(ids ...string) *discordapi.Member { return &discordapi.Member{Roles: ids} }
	no, yes := false, true
	for name, tt := range map[string]struct {
		guild, user string
		bot         bool
		member      *discordapi.Member
		want        *bool
	}{
		"owner":                      {"5", "1", false, roles(), &yes},
		"owner, by the REST API":     {"5", "1", false, nil, &yes},
		"manages the guild":          {"5", "2", false, roles("52", "50"), &yes},
		"administrator":              {"5", "2", false, roles("51"), &yes},
		"member":                     {"5", "2", false, roles("52", "no role"), &no},
		"member, by the REST API":    {"5", "2", false, nil, nil},
		"bot":                        {"5", "2", true, roles("51"), nil},
		"guild that is not read yet": {"6", "2", false, roles("51"), nil},
		"private chat":               {"", "2", false, nil, nil},
	} {
		var want []adapter.Admin
		row := &msg.Message{ChatJID: "discord:7", Sender: "discord:" + tt.user, IsBot: tt.bot}
		if tt.want != nil {
			want = []adapter.Admin{{ChatJID: row.ChatJID, Sender: row.Sender, Is: *tt.want}}
		}
		if diff := cmp.Diff(want, known.admins(tt.guild, row, tt.member)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
