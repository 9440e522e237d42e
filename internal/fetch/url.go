// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/satchel-dev/satchel/internal/endpoint"
)

// maxURL bounds a URL from outside.
const maxURL = 2048

// ParseURL reads the http or https URL of a source. Credentials in it are refused, as it is shown in messages and
// statuses.
func ParseURL(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL:
		return nil, Errorf(Refused, "the URL is malformed, or has more than %d bytes", maxURL)
	case parsed.User != nil:
		return nil, Errorf(Refused, "the URL has credentials in it, which would be shown in statuses: remove them")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return nil, Errorf(Refused, "the URL's scheme %s is not supported: use https", Quote(parsed.Scheme))
	case !ValidServer(parsed):
		return nil, Errorf(Refused, "the URL has no valid host or port")
	case credentialIn(parsed.RawQuery) != "":
		return nil, Errorf(Refused, "the URL has a credential in its query (%s), where every reader of the source sees it: "+
			"put it into a Secret and name that in secretRef", credentialIn(parsed.RawQuery))
	case parsed.Fragment != "" || strings.ContainsFunc(parsed.Path, unacceptable):
		return nil, Errorf(Refused, "the URL has a fragment or a control character in it")
	}
	return parsed, nil
}

// credentialName matches the parameters of a query by which servers take a lasting credential. The CRD has the same list
// for what is not escaped. Signed URLs (X-Amz-Signature, sig) are accepted: they are good for one object and for a while.
var credentialName = regexp.MustCompile(`(?i)^(((access|api|auth|bearer|deploy|id|job|oauth|private|refresh)[_-]?)?token|bearer|` +
	`passwd|password|passphrase|(client[_-]?)?secret|api[_-]?key|authorization)$`)

// credentialIn returns the name of a parameter that is a credential; "" for none.
func credentialIn(query string) string {
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		if unescaped, err := url.QueryUnescape(name); err == nil {
			name = unescaped
		}
		if credentialName.MatchString(name) {
			return name
		}
	}
	return ""
}

// ValidServer tells whether a URL has a host that a server may have, and a port that exists or none.
func ValidServer(u *url.URL) bool {
	_, err := endpoint.OfURL(u)
	return err == nil
}

func unacceptable(r rune) bool {
	return !unicode.IsGraphic(r)
}

// DisplayURL returns a URL as it may be shown: without query, which can hold a signature.
func DisplayURL(u *url.URL) string {
	shown := *u
	shown.RawQuery = ""
	shown.ForceQuery = false
	shown.User = nil
	shown.Fragment = ""
	return shown.String()
}

// Below returns the URL of something below another, with its path at the end.
func Below(base *url.URL, path string) *url.URL {
	target := *base
	target.Path, target.RawPath = strings.TrimRight(target.Path, "/")+path, ""
	if base.RawPath != "" {
		target.RawPath = strings.TrimRight(base.RawPath, "/") + path
	}
	return &target
}
