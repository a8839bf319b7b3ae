package events

import (
	"strings"

	"github.com/bwmarrin/discordgo"
)

// Rebase points the library at a server. Its only means are these variables, which it computes from
// each other when the program starts. They are global: main calls this once, before anything
// connects.
func Rebase(base string) {
	discordgo.EndpointDiscord = strings.TrimSuffix(base, "/") + "/"
	discordgo.EndpointAPI = discordgo.EndpointDiscord + "api/v" + discordgo.APIVersion + "/"
	for variable, path := range map[*string]string{
		&discordgo.EndpointGuilds: "guilds/", &discordgo.EndpointChannels: "channels/", &discordgo.EndpointUsers: "users/",
		&discordgo.EndpointGateway: "gateway", &discordgo.EndpointGatewayBot: "gateway/bot", &discordgo.EndpointWebhooks: "webhooks/",
		&discordgo.EndpointStickers: "stickers/", &discordgo.EndpointStageInstances: "stage-instances", &discordgo.EndpointSKUs: "skus",
		&discordgo.EndpointVoice: "voice/", &discordgo.EndpointVoiceRegions: "voice/regions",
		&discordgo.EndpointApplications: "applications", &discordgo.EndpointOAuth2: "oauth2/",
		&discordgo.EndpointOAuth2Applications: "oauth2/applications",
	} {
		*variable = discordgo.EndpointAPI + path
	}
}
