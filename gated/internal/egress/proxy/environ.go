package proxy

import "strings"

// Environ are the variables by which programs find the proxy and the certificates that they trust: those of curl, Git,
// OpenSSL, Python, Node, Deno, Rust and Go, and of the tools that have names of their own. direct is a host that they
// reach without the proxy, besides their own loopback; "" for none.
func Environ(proxyURL, bundle, direct string) (env []string) {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY",
		"npm_config_https_proxy", "npm_config_proxy"} {
		env = append(env, name+"="+proxyURL)
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"GIT_SSL_CAINFO", "DENO_CERT", "CARGO_HTTP_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "npm_config_cafile",
		"CODEX_CA_CERTIFICATE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"} {
		env = append(env, name+"="+bundle)
	}
	own := strings.TrimSuffix("127.0.0.1,localhost,"+direct, ",")
	return append(env, "NO_PROXY="+own, "no_proxy="+own, "NODE_USE_ENV_PROXY=1")
}
