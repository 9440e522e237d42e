// SPDX-License-Identifier: Apache-2.0

package git

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	sshScheme = "ssh"
	// maxURL bounds the URL of a repository.
	maxURL = 2048
	// defaultUser is the user of an ssh URL that names none.
	defaultUser = "git"
)

// scpLike matches git's short form for SSH, which is no URL.
var scpLike = regexp.MustCompile(`^([A-Za-z0-9._~+-]+@)?(\[[^]/]+\]|[^]\[:/@]+):[^/]`)

// parseRepository reads the URL of a repository, https, http or ssh.
func parseRepository(text string) (*url.URL, error) {
	if strings.HasPrefix(strings.ToLower(text), sshScheme+"://") {
		return parseSSH(text)
	}
	if !strings.Contains(text, "://") && scpLike.MatchString(text) {
		return nil, fetch.Errorf(fetch.Refused, "the repository is no URL: write ssh://user@host/path instead of user@host:path")
	}
	parsed, err := fetch.ParseURL(text)
	if err == nil && (parsed.RawQuery != "" || parsed.ForceQuery) {
		err = fetch.Errorf(fetch.Refused, "the URL has a query, which no repository has")
	}
	return parsed, err
}

// userName is one that cannot be taken for anything else.
var userName = regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._@+-]{0,63}$`)

// hostName is a name or an address. A zone is not allowed: it is about this machine.
var hostName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?|[0-9A-Fa-f:.]+)$`)

// parseSSH reads the URL of a repository that is reached over SSH.
func parseSSH(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL:
		return nil, fetch.Errorf(fetch.Refused, "the URL is malformed, or has more than %d bytes", maxURL)
	case hasPassword(parsed):
		return nil, fetch.Errorf(fetch.Refused, "the URL has a password in it, which would be shown in statuses: remove it")
	case !hostName.MatchString(parsed.Hostname()) || !fetch.ValidServer(parsed):
		return nil, fetch.Errorf(fetch.Refused, "the URL has no valid host or port")
	case parsed.User != nil && !userName.MatchString(parsed.User.Username()):
		return nil, fetch.Errorf(fetch.Refused, "the URL's user name is not one that SSH servers use")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return nil, fetch.Errorf(fetch.Refused, "the URL has a query or a fragment, which no repository has")
	case strings.Trim(parsed.Path, "/") == "" || strings.ContainsFunc(parsed.Path, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return nil, fetch.Errorf(fetch.Refused, "the URL has no path, or a control character in it")
	}
	if parsed.User == nil {
		parsed.User = url.User(defaultUser)
	}
	return parsed, nil
}

func hasPassword(u *url.URL) bool {
	_, found := u.User.Password()
	return found
}
