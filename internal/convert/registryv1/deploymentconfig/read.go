// SPDX-License-Identifier: Apache-2.0

package deploymentconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// configPath begins the path of each field.
const configPath = "deploymentConfig"

// Bounds of a config, beyond which an operator is configured by other means.
const (
	mostVariables = 500
	mostOthers    = 100
)

// Read decodes a config, as an API server would decode it that knows the fields, and checks what a Pod
// needs of it. The config is nil where there is none. The problems are all that were found, each with the path of a field.
func Read(data []byte) (*Config, []manifest.Problem) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	config := &Config{}
	strict, err := kjson.UnmarshalStrict(data, config)
	if err != nil {
		return nil, []manifest.Problem{wrongType(data, err)}
	}
	var problems []manifest.Problem
	for _, fault := range strict {
		if at, ok := fault.(kjson.FieldError); ok { //nolint:errorlint // the library documents that each of the list is one
			at.SetFieldPath(configPath + "." + at.FieldPath())
		}
		problems = append(problems, configProblem("%v", fault))
	}
	return config, append(problems, config.check()...)
}

func configProblem(message string, args ...any) manifest.Problem {
	return manifest.Problem{Rule: "D7", Message: fmt.Sprintf(message, args...), Remedy: "correct spec.registryV1.deploymentConfig"}
}

// wrongType names the field that has a value of another type.
func wrongType(data []byte, err error) manifest.Problem {
	var wrong *json.UnmarshalTypeError // which the library that found it keeps to itself
	if again := json.Unmarshal(data, &Config{}); !errors.As(again, &wrong) {
		return configProblem("%s cannot be read: %v", configPath, err)
	}
	path := configPath
	if wrong.Field != "" {
		path += "." + wrong.Field
	}
	kind, _, _ := strings.Cut(wrong.Value, " ") // "number 8080"
	return configProblem("%s is %s, not %s", path, cmp.Or(kinds[kind], kind), wanted(wrong.Type))
}

// kinds of JSON values in the words of YAML.
var kinds = map[string]string{"object": "a mapping", "array": "a list", "number": "a number", "string": "a string", "bool": "true or false"}

// wanted names the JSON type of a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string; put it into quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	default:
		return "a whole number"
	}
}

// check finds what no Pod can have.
func (c *Config) check() []manifest.Problem {
	problems := slices.Concat(
		checkNames("env", c.Env, mostVariables, true, EnvName),
		checkNames("volumes", c.Volumes, mostOthers, true, func(v corev1.Volume) string { return v.Name }),
		checkNames("volumeMounts", c.VolumeMounts, mostOthers, false, func(m corev1.VolumeMount) string { return m.Name }),
	)
	for i, mount := range c.VolumeMounts {
		if mount.MountPath == "" {
			problems = append(problems, configProblem("%s.volumeMounts[%d].mountPath is missing", configPath, i))
		}
	}
	for field, count := range map[string]int{"envFrom": len(c.EnvFrom), "tolerations": len(c.Tolerations)} {
		if count > mostOthers {
			problems = append(problems, tooMany(field, count, mostOthers))
		}
	}
	return problems
}

func tooMany(field string, count, most int) manifest.Problem {
	return configProblem("%s.%s has %d entries, at most %d are possible", configPath, field, count, most)
}

// checkNames finds entries without a name and, where they are a set, those of the same name.
func checkNames[T any](field string, entries []T, most int, set bool, name func(T) string) []manifest.Problem {
	if len(entries) > most {
		return []manifest.Problem{tooMany(field, len(entries), most)}
	}
	var problems []manifest.Problem
	seen := map[string]int{}
	for i, entry := range entries {
		first, found := seen[name(entry)]
		switch {
		case name(entry) == "":
			problems = append(problems, configProblem("%s.%s[%d].name is missing", configPath, field, i))
		case found && set:
			problems = append(problems, configProblem("%s.%s[%d].name is %q, as that of entry %d", configPath, field, i, name(entry), first))
		default:
			seen[name(entry)] = i
		}
	}
	return problems
}
