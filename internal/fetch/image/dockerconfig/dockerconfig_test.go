// SPDX-License-Identifier: Apache-2.0

package dockerconfig

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// entriesOf is a Docker configuration with entries of the users user0, user1 and so on.
func entriesOf(keys ...string) string {
	entries := make([]string, 0, len(keys))
	for i, key := range keys {
		auth := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "user%d:CANARY", i))
		entries = append(entries, fmt.Sprintf("%q:{%q:%q}", key, "auth", auth))
	}
	return `{"auths":{` + strings.Join(entries, ",") + `}}`
}

func TestDockerConfigHosts(t *testing.T) {
	cases := map[string]struct {
		reason           string
		keys             []string
		host, repository string
		want             string // user name
	}{
		"Host":           {"the usual form", []string{"quay.io"}, "quay.io", "org/b", "user0"},
		"Other":          {"another registry", []string{"quay.io"}, "ghcr.io", "org/b", ""},
		"Below":          {"not the domain's other hosts", []string{"quay.io"}, "evil.quay.io", "b", ""},
		"Ending":         {"only looks alike", []string{"quay.io"}, "evilquay.io", "b", ""},
		"Case":           {"hosts have no case", []string{"Quay.IO"}, "quay.io", "b", "user0"},
		"Port":           {"another server", []string{"quay.io:5000"}, "quay.io", "b", ""},
		"PortToo":        {"another server", []string{"quay.io"}, "quay.io:5000", "b", ""},
		"SamePort":       {"that one", []string{"quay.io:5000"}, "quay.io:5000", "b", "user0"},
		"Scheme":         {"as docker login writes it", []string{"https://quay.io"}, "quay.io", "b", "user0"},
		"Version":        {"as docker login writes it", []string{"https://quay.io/v2/"}, "quay.io", "b", "user0"},
		"Hub":            {"as docker login writes it", []string{"https://index.docker.io/v1/"}, "index.docker.io", "library/b", "user0"},
		"HubShort":       {"as people write it", []string{"docker.io"}, "index.docker.io", "library/b", "user0"},
		"HubServer":      {"as the API is called", []string{"registry-1.docker.io"}, "index.docker.io", "b", "user0"},
		"HubFolder":      {"one account", []string{"docker.io/org"}, "index.docker.io", "org/b", "user0"},
		"HubOtherFolder": {"another account", []string{"docker.io/org"}, "index.docker.io", "other/b", ""},
		"Wildcard":       {"any one label", []string{"*.example.org"}, "a.example.org", "b", "user0"},
		"WildcardDeep":   {"no more than one", []string{"*.example.org"}, "a.b.example.org", "b", ""},
		"WildcardNone":   {"not the domain itself", []string{"*.example.org"}, "example.org", "b", ""},
		"WildcardPart":   {"a part of a label", []string{"reg-*.example.org"}, "reg-eu.example.org", "b", "user0"},
		"WildcardPort":   {"not any port", []string{"*.example.org"}, "a.example.org:5000", "b", ""},
		"WildcardMiddle": {"anywhere", []string{"a.*.org"}, "a.example.org", "b", "user0"},
		"Folder":         {"that and what is below", []string{"quay.io/team"}, "quay.io", "team/b/c", "user0"},
		"FolderItself":   {"that", []string{"quay.io/team/b"}, "quay.io", "team/b", "user0"},
		"FolderEnding":   {"only looks alike", []string{"quay.io/team"}, "quay.io", "team-b/c", ""},
		"FolderRealm":    {"a token server has no repositories", []string{"quay.io/team"}, "quay.io", "", ""},
		"Longest":        {"the longest path", []string{"quay.io", "quay.io/team", "quay.io/team/b"}, "quay.io", "team/b/c", "user2"},
		"LongestNot":     {"that applies", []string{"quay.io", "quay.io/team", "quay.io/team/b"}, "quay.io", "team/c", "user1"},
		"Exact":          {"rather than a wildcard", []string{"*.example.org", "a.example.org"}, "a.example.org", "b", "user1"},
		"IPv6":           {"an address", []string{"[::1]:5000"}, "[::1]:5000", "b", "user0"},
		"None":           {"empty", nil, "quay.io", "b", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			keychain, err := Parse([]byte(entriesOf(tc.keys...)))
			if err != nil {
				t.Fatal(err)
			}
			login, found, err := keychain.Login(context.Background(), tc.host, tc.repository)
			if err != nil || login.Username != tc.want || found != (tc.want != "") {
				t.Errorf("%s: %v, %v, %v", tc.reason, login, found, err)
			}
		})
	}
}

func TestDockerConfigLogins(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString
	cases := map[string]struct {
		reason, entry string
		want          fetch.Login
	}{
		"Auth":      {"the usual form", `{"auth":"` + encoded([]byte("u:p")) + `"}`, fetch.Login{Username: "u", Password: "p"}},
		"Unpadded":  {"some tools do so", `{"auth":"` + strings.TrimRight(encoded([]byte("user:p")), "=") + `"}`, fetch.Login{Username: "user", Password: "p"}},
		"Colons":    {"belong to the password", `{"auth":"` + encoded([]byte("u:p:q")) + `"}`, fetch.Login{Username: "u", Password: "p:q"}},
		"Plain":     {"as kubectl writes it", `{"username":"u","password":"p","email":"e"}`, fetch.Login{Username: "u", Password: "p"}},
		"Both":      {"auth counts", `{"username":"x","password":"y","auth":"` + encoded([]byte("u:p")) + `"}`, fetch.Login{Username: "u", Password: "p"}},
		"Identity":  {"as az acr login writes it", `{"auth":"` + encoded([]byte("00000000:")) + `","identitytoken":"t"}`, fetch.Login{Username: registryauth.IdentityToken, Password: "t"}},
		"Registry":  {"the narrowest", `{"identitytoken":"t","registrytoken":"r"}`, fetch.Login{Token: "r"}},
		"Zeros":     {"what docker pads with", `{"auth":"` + encoded([]byte("u:p\x00\x00")) + `"}`, fetch.Login{Username: "u", Password: "p"}},
		"NoSecret":  {"some registries want no password", `{"username":"u"}`, fetch.Login{Username: "u"}},
		"MoreWords": {"of newer versions", `{"username":"u","password":"p","more":{"a":1}}`, fetch.Login{Username: "u", Password: "p"}},
	}
	for name, tc := range cases {
		for form, file := range map[string]string{"": `{"auths":{"quay.io":%s},"HttpHeaders":{}}`, "Old": `{"quay.io":%s}`} {
			t.Run(name+form, func(t *testing.T) {
				keychain, err := Parse(fmt.Appendf(nil, file, tc.entry))
				if err != nil {
					t.Fatal(err)
				}
				login, found, err := keychain.Login(context.Background(), "quay.io", "b")
				if diff := cmp.Diff(tc.want, login); diff != "" || !found || err != nil {
					t.Errorf("%s: %v %v %s", tc.reason, found, err, diff)
				}
			})
		}
	}
}

func TestM23DockerConfigRefusals(t *testing.T) {
	cases := map[string]struct{ reason, file, text string }{
		"Empty":     {"nothing", ``, "not a JSON object"},
		"YAML":      {"another format", "auths:\n  CANARY: x", "not a JSON object"},
		"List":      {"another shape", `["CANARY"]`, "not a JSON object"},
		"Null":      {"another shape", `null`, "not a JSON object"},
		"Cut":       {"the end is missing", `{"auths":{"quay.io":{"auth":"CANARY`, "not a JSON object"},
		"AuthsList": {"another shape", `{"auths":["CANARY"]}`, "auths of the Docker configuration"},
		"Store":     {"a program on another machine", `{"credsStore":"desktop"}`, "credsStore names a program"},
		"Helpers":   {"a program on another machine", `{"credHelpers":{"quay.io":"x"}}`, "credHelpers names a program"},
		"Entry":     {"another shape", `{"auths":{"quay.io":"CANARY"}}`, `the entry "quay.io" of the Docker configuration is malformed`},
		"EntryNull": {"another shape", `{"auths":{"quay.io":null}}`, `the entry "quay.io"`},
		"Number":    {"another shape", `{"auths":{"quay.io":{"auth":7}}}`, `the entry "quay.io"`},
		"Base64":    {"damaged", `{"auths":{"quay.io":{"auth":"CANARY!!"}}}`, `the entry "quay.io" of the Docker configuration is malformed: its auth is not the base64`},
		"NoColon":   {"no password", `{"auths":{"quay.io":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("CANARY")) + `"}}}`, `the entry "quay.io"`},
		"Newline":   {"would forge a header", `{"auths":{"quay.io":{"registrytoken":"CANARY\r\nX: y"}}}`, `the entry "quay.io"`},
		"UserColon": {"cannot be told from the password", `{"auths":{"quay.io":{"username":"CANARY:x","password":"y"}}}`, `the entry "quay.io"`},
		"KeyUser":   {"a login in the name is not shown", `{"auths":{"https://CANARY@quay.io":{"username":"x"}}}`, "an @ in its name"},
		"KeyEmpty":  {"no host", `{"auths":{"":{"username":"x"}}}`, `the entry "" of the Docker configuration names no registry`},
		"KeySpace":  {"no host", `{"auths":{"quay .io":{"username":"x"}}}`, `the entry "quay .io"`},
		"KeyQuery":  {"no host", `{"auths":{"quay.io?x":{"username":"x"},"quay.io/v1/?x":{"username":"x"}}}`, `names no registry`},
		"KeyScheme": {"no registry", `{"auths":{"ftp://quay.io":{"username":"x"}}}`, `names no registry`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.file))
			if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestDockerConfigEntryWithoutLogin(t *testing.T) {
	keychain, err := Parse([]byte(`{"auths":{"quay.io":{},"ghcr.io":{"username":"u","password":"p"}},"credsStore":"desktop"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := keychain.Login(context.Background(), "ghcr.io", "b"); !found || err != nil {
		t.Errorf("the other entry is good: %v %v", found, err)
	}
	_, found, err := keychain.Login(context.Background(), "quay.io", "b")
	if found || fetch.ReasonOf(err) != fetch.Unauthorized || !strings.Contains(err.Error(), `"quay.io" of the Docker configuration has no login`) {
		t.Errorf("%v %v", found, err)
	}
}

func FuzzDockerConfig(f *testing.F) {
	f.Add([]byte(entriesOf("https://index.docker.io/v1/", "*.example.org", "quay.io/team", "[::1]:5000")), "quay.io", "team/b")
	f.Add([]byte(`{"auths":{"a":{"identitytoken":"CANARY"},"b[":{"auth":"CANARY"},"c@d":{}}}`), "a", "")
	f.Add([]byte(`{"a.?.c":{"username":"CANARY","password":"\u0000"}}`), "a.b.c", "d")
	f.Fuzz(func(t *testing.T, data []byte, host, repository string) {
		keychain, err := Parse(data)
		if err != nil {
			if fetch.ReasonOf(err) != fetch.Refused || len(err.Error()) > 2<<10 {
				t.Errorf("%v", err)
			}
			return
		}
		login, found, err := keychain.Login(context.Background(), host, repository)
		if found == login.Empty() || found && err != nil {
			t.Errorf("%v %v %v", login, found, err)
		}
		if found && strings.ContainsFunc(login.Username+login.Password+login.Token, control) {
			t.Errorf("%q", login)
		}
	})
}

// M39: entries are for a host and a port, whatever their spelling.
func TestM39Logins(t *testing.T) {
	tests := map[string]struct {
		entry, asked string
		want         bool
	}{
		"host":              {"quay.io", "quay.io", true},
		"plain HTTP":        {"quay.io", "quay.io:80", true},
		"port in the entry": {"quay.io:443", "quay.io", true},
		"zeros":             {"https://quay.io:0443/v2/", "quay.io", true},
		"other port":        {"quay.io:08443", "quay.io:8443", true},
		"not the port":      {"quay.io", "quay.io:8443", false},
		"not the plain one": {"quay.io:443", "quay.io:80", false},
		"dot":               {"Quay.io.", "quay.io", true},
		"IPv6":              {"[0:0:0:0:0:0:0:1]:8443", "[::1]:8443", true},
		"hub":               {"docker.io:443", "index.docker.io", true},
		"hub, plain":        {"https://index.docker.io/v1/", "registry-1.docker.io:80", true},
		"not the hub":       {"docker.io", "docker.io:8443", false},
		"wildcard":          {"*.Example.org:08443", "a.example.org:8443", true},
		"wildcard, plain":   {"*.example.org", "a.example.org:80", true},
		"wildcard, port":    {"*.example.org", "a.example.org:8443", false},
	}
	for name, tc := range tests {
		logins, err := Parse([]byte(`{"auths":{"` + tc.entry + `":{"username":"u","password":"p"}}}`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, found, err := logins.Login(t.Context(), tc.asked, "org/app"); found != tc.want || err != nil {
			t.Errorf("%s: the entry %s for %s: %t, %v", name, tc.entry, tc.asked, found, err)
		}
	}
}
