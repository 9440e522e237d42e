// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// secretName matches names of values that are secrets in most charts.
var secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)?$|passw|secret|token|credential|(private|api|access|encryption|signing)[-_]?key|auth$|^dsn$|connectionstring`)

// openName matches names of values that say where a secret is, or how it is used.
var openName = regexp.MustCompile(`(?i)^existing|(name|names|ref|refs|enabled|path|file|type|namespace|issuer|url|mode|policy|keys?)$`)

// privateKey matches the names among those of openName that are secrets all the same.
var privateKey = regexp.MustCompile(`(?i)(private|api|access|encryption|signing|secret)[-_]?keys?$`)

// SecretValues are the paths of values that look like secrets, sorted.
func SecretValues(values map[string]any) []string {
	found := secretsBelow("", "", values)
	slices.Sort(found)
	return found
}

// secretsBelow looks at a value with the path and the name under which it stands. Items of a list stand under the name of the list.
func secretsBelow(path, name string, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		if plain, isText := value["name"].(string); isText && value["value"] != nil { // a variable of an environment
			return secretsBelow(path, plain, value["value"])
		}
		for key, item := range value {
			found = append(found, secretsBelow(strings.TrimPrefix(path+"."+key, "."), key, item)...)
		}
	case []any:
		for i, item := range value {
			found = append(found, secretsBelow(fmt.Sprintf("%s[%d]", path, i), name, item)...)
		}
	case string:
		if value != "" && (isSecretName(name) || printer.RedactText(value) != value) {
			found = append(found, path)
		}
	}
	return found
}

func isSecretName(name string) bool {
	return secretName.MatchString(name) && (!openName.MatchString(name) || privateKey.MatchString(name))
}
