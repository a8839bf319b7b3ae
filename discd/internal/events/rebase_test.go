package events

import (
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
)

func TestRebase_ChangesEveryEndpoint(t *testing.T) {
	Rebase("http://127.0.0.1:1")
	for _, address := range []string{
		discordgo.EndpointAPI, discordgo.EndpointGuilds, discordgo.EndpointChannels, discordgo.EndpointUsers,
		discordgo.EndpointGateway, discordgo.EndpointGatewayBot, discordgo.EndpointWebhooks, discordgo.EndpointStickers,
		discordgo.EndpointStageInstances, discordgo.EndpointSKUs, discordgo.EndpointVoice, discordgo.EndpointVoiceRegions,
		discordgo.EndpointApplications, discordgo.EndpointOAuth2, discordgo.EndpointOAuth2Applications,
		discordgo.EndpointChannelMessages("5"), discordgo.EndpointApplication("5"), discordgo.EndpointGuild("5"),
	} {
		if !strings.HasPrefix(address, "http://127.0.0.1:1/api/v9/") || strings.Contains(address[len("http://"):], "//") {
			t.Errorf("%s", address)
		}
	}
}
