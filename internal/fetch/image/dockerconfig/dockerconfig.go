// SPDX-License-Identifier: Apache-2.0

package dockerconfig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/image/registryauth"
)

// Parse reads the logins of a Docker configuration: config.json, which is the key .dockerconfigjson of a
// Secret, or its predecessor .dockercfg. Errors name the entry and nothing of its content.
//
// An entry is for a host with its port, as written, and for the repositories below its path, if it has one. "*" and "?"
// stand for characters between two dots of the host, as in the kubelet: *.example.org is no login for a.b.example.org.
// Unlike there, a path ends where a folder does: example.org/team is none for example.org/team-b. Of several entries
// that match, the one with the longest path counts, then the one without wildcards. All names of Docker Hub are one.
func Parse(data []byte) (registryauth.Keychain, error) {
	entries, err := dockerEntries(data)
	if err != nil {
		return nil, err
	}
	var logins dockerConfig
	for where, raw := range entries {
		entry, err := parseEntry(where, raw)
		if err != nil {
			return nil, err
		}
		logins = append(logins, entry)
	}
	slices.SortFunc(logins, moreSpecific)
	return logins, nil
}

// dockerEntries finds the entries in either form of the file.
func dockerEntries(data []byte) (map[string]json.RawMessage, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil || file == nil {
		return nil, fetch.Errorf(fetch.Refused, "the Docker configuration is not a JSON object")
	}
	auths, modern := file["auths"]
	if !modern {
		for _, key := range []string{"credsStore", "credHelpers"} {
			if _, found := file[key]; found {
				return nil, fetch.Errorf(fetch.Refused,
					"the Docker configuration has no auths: %s names a program on the machine where it was made", key)
			}
		}
		return file, nil
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(auths, &entries); err != nil {
		return nil, fetch.Errorf(fetch.Refused, "auths of the Docker configuration is not a JSON object")
	}
	return entries, nil
}

// dockerConfig is the entries of a file, the ones to prefer first.
type dockerConfig []dockerEntry

// dockerEntry is one login, and for what it is.
type dockerEntry struct {
	key    string          // as written
	server endpoint.Server // its host may have wildcards
	folder string          // of repositories; "" is all
	login  fetch.Login
}

// Login implements Keychain.
func (c dockerConfig) Login(_ context.Context, host, repository string) (fetch.Login, bool, error) {
	asked, err := endpoint.Parse(host)
	if err != nil {
		return fetch.Login{}, false, nil
	}
	asked = oneHub(asked.On("https"))
	for _, entry := range c {
		if !entry.matches(asked, repository) {
			continue
		}
		if entry.login.Empty() {
			return fetch.Login{}, false, fetch.Errorf(fetch.Unauthorized, "the entry %s of the Docker configuration has no "+
				"login: docker keeps it in a credential helper, which does not come along", fetch.Quote(entry.key))
		}
		return entry.login, true, nil
	}
	return fetch.Login{}, false, nil
}

// matches tells whether the entry is for a repository of a host.
func (e dockerEntry) matches(asked endpoint.Server, repository string) bool {
	if e.folder != "" && repository != e.folder && !strings.HasPrefix(repository, e.folder+"/") {
		return false
	}
	if !e.wild() {
		return e.server.Matches(asked)
	}
	wanted, labels := strings.Split(e.server.Host, "."), strings.Split(asked.Host, ".")
	if port := (endpoint.Server{Host: asked.Host, Port: e.server.Port}); !port.Matches(asked) || len(wanted) != len(labels) {
		return false
	}
	for i, label := range labels {
		if ok, err := path.Match(wanted[i], label); err != nil || !ok {
			return false
		}
	}
	return true
}

func (e dockerEntry) wild() bool { return strings.ContainsAny(e.server.Host, "*?") }

func moreSpecific(a, b dockerEntry) int {
	return cmp.Or(
		cmp.Compare(strings.Count(b.folder, "/"), strings.Count(a.folder, "/")),
		cmp.Compare(len(b.folder), len(a.folder)),
		compareBool(a.wild(), b.wild()),
		cmp.Compare(len(b.server.String()), len(a.server.String())),
		cmp.Compare(a.key, b.key),
	)
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// parseEntry reads one entry and the name it stands under.
func parseEntry(key string, raw json.RawMessage) (dockerEntry, error) {
	entry := dockerEntry{key: key}
	if strings.Contains(key, "@") {
		return entry, fetch.Errorf(fetch.Refused, "an entry of the Docker configuration has an @ in its name: "+
			"write the host only, and the login into the entry")
	}
	var ok bool
	if entry.server, entry.folder, ok = parseServer(key); !ok {
		return entry, fetch.Errorf(fetch.Refused, "the entry %s of the Docker configuration names no registry: "+
			"write host or host:port", fetch.Quote(key))
	}
	login, err := parseLogin(raw)
	if err != nil {
		return entry, fetch.Errorf(fetch.Refused, "the entry %s of the Docker configuration is malformed: %w",
			fetch.Quote(key), err)
	}
	entry.login = login
	return entry, nil
}

// parseServer reads the name of an entry: a host, with a scheme or without, with a path or without. The paths v1 and v2
// are those of the API and stand for the host.
func parseServer(key string) (server endpoint.Server, folder string, ok bool) {
	text := key
	if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		text = "https://" + text
	}
	scheme, rest, _ := strings.Cut(text, "://")
	host, folder, _ := strings.Cut(rest, "/")
	folder = strings.Trim(folder, "/")
	for _, version := range []string{"v1", "v2"} {
		if folder == version || strings.HasPrefix(folder, version+"/") {
			folder = strings.Trim(strings.TrimPrefix(folder, version), "/")
			break
		}
	}
	plain := strings.NewReplacer("*", "x", "?", "x").Replace(host)
	parsed, err := url.Parse(scheme + "://" + plain)
	if err != nil || !image.HostText.MatchString(plain) || parsed.Host != plain || folder != "" && !image.RepositoryText.MatchString(folder) {
		return endpoint.Server{}, "", false
	}
	if server, err = endpoint.Parse(plain); err != nil {
		return endpoint.Server{}, "", false
	}
	if plain != host {
		server.Host = wildcards(host)
	}
	return oneHub(server), folder, true
}

// wildcards returns the host of an entry with wildcards, as they are compared label by label.
func wildcards(host string) string {
	host, _, _ = strings.Cut(host, ":")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// oneHub gives Docker Hub one name and no port.
func oneHub(server endpoint.Server) endpoint.Server {
	if server.IsDockerHub() {
		return endpoint.Server{Host: endpoint.DockerHub}
	}
	return server
}

// parseLogin reads the content of an entry. Of what it holds the narrowest counts: a registry token, an identity token,
// user name and password, in auth or, without that, by themselves. The errors say nothing of the content.
func parseLogin(raw json.RawMessage) (fetch.Login, error) {
	var entry struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &entry) != nil {
		return fetch.Login{}, errors.New("it is not a JSON object with texts")
	}
	login := fetch.Login{Username: entry.Username, Password: entry.Password}
	if entry.Auth != "" {
		var ok bool
		if login.Username, login.Password, ok = decodeAuth(entry.Auth); !ok {
			return fetch.Login{}, errors.New("its auth is not the base64 of user:password")
		}
	}
	switch {
	case entry.RegistryToken != "":
		login = fetch.Login{Token: entry.RegistryToken}
	case entry.IdentityToken != "":
		login = fetch.Login{Username: registryauth.IdentityToken, Password: entry.IdentityToken}
	}
	if strings.Contains(login.Username, ":") || strings.ContainsFunc(login.Username+login.Password+login.Token, control) {
		return fetch.Login{}, errors.New("it has a colon in the user name, or a control character")
	}
	return login, nil
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// decodeAuth reads the base64 of "user:password", padded or not.
func decodeAuth(text string) (user, password string, ok bool) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	decoded, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
}
