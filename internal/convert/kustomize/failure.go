// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bounds of what is remembered in order not to be quoted, and of a message.
const (
	shortestSecret = 3
	mostSecrets    = 20_000
	longestMessage = 1000
)

// hide has a value never quoted.
func (t *tree) hide(value string) {
	if len(value) >= shortestSecret && len(t.secrets) < mostSecrets {
		t.secrets = append(t.secrets, value)
	}
}

// keep remembers the values of a Secret, or of a patch that may be of one.
func (t *tree) keep(value any) {
	object, ok := value.(map[string]any)
	if !ok || object["kind"] != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		entries, _ := object[field].(map[string]any)
		for _, entry := range entries {
			text, ok := entry.(string)
			if !ok {
				continue
			}
			t.hide(text)
			if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
				t.hide(string(decoded))
			}
		}
	}
}

// dumped begins what the library quotes of an object when it fails.
var dumped = regexp.MustCompile(`(?s)(: )?(node contents|with value|value:).*`)

// configured is how the library quotes the configuration of a transformer before it says what is wrong with it.
var configured = regexp.MustCompile("(?s) with config: `.*?`: ")

// failure says why a build failed, without values of Secrets or whole objects.
func (t *tree) failure(err error) manifest.Problem {
	message := dumped.ReplaceAllString(configured.ReplaceAllString(err.Error(), ": "), "")
	slices.SortFunc(t.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range t.secrets {
		message = strings.ReplaceAll(message, secret, "***")
	}
	message = strings.ReplaceAll(strings.ReplaceAll(message, root+"/", ""), root, ".")
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "…"
	}
	return manifest.Problem{File: t.rootFile, Rule: RuleKustomize, Message: message, Remedy: "correct what it names"}
}

// jsonFault says what is wrong with a kustomization, without its values.
func jsonFault(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("%s has to be of the type %s, and is a %s", cmp.Or(kind.Field, "it"), kind.Type, strings.Fields(kind.Value + " ")[0])
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
