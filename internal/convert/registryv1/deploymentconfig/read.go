// SPDX-License-Identifier: Apache-2.0

package deploymentconfig

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/shape"
)

// configPath begins the path of each field.
const configPath = "deploymentConfig"

// Bounds of a config, beyond which an operator is configured by other means.
const (
	mostVariables = 500
	mostOthers    = 100
)

var configShape = sync.OnceValue(shape.Of[Config])

// Misfits returns what of a decoded config does not fit, with the path from spec.registryV1. The config is of no use afterwards.
func Misfits(config any) []shape.Misfit {
	return shape.Strict(configShape(), config, shape.Path{{Key: configPath}})
}

// Read decodes a config, as an API server would decode it that knows the fields, and checks what a Pod
// needs of it. The config is nil where there is none. The problems are all that were found, each with the path of a field.
func Read(data []byte) (*Config, []manifest.Problem) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	var value any
	repeated, err := kjson.UnmarshalStrict(data, &value, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, []manifest.Problem{configProblem("%s cannot be read: %v", configPath, err)}
	}
	var problems []manifest.Problem
	for _, fault := range repeated {
		if at, ok := fault.(kjson.FieldError); ok { //nolint:errorlint // the library documents that each of the list is one
			at.SetFieldPath(configPath + "." + at.FieldPath())
		}
		problems = append(problems, configProblem("%v", fault))
	}
	for _, m := range Misfits(value) {
		problems = append(problems, configProblem("%s", m))
	}
	config := &Config{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, config); err != nil {
		if len(problems) == 0 {
			problems = append(problems, configProblem("%s cannot be read: %v", configPath, err))
		}
		return nil, problems
	}
	return config, append(problems, config.check()...)
}

func configProblem(message string, args ...any) manifest.Problem {
	return manifest.Problem{Rule: "D7", Message: fmt.Sprintf(message, args...), Remedy: "correct spec.registryV1.deploymentConfig"}
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
