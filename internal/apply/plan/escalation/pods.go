// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// spot is a Pod or a container in an object, and how messages begin that are about it.
type spot struct{ place, prefix string }

const defaultAccount = "default"

// template is a Pod template.
var template = field{below: map[string]field{"metadata": {check: templateMetadata}, "spec": podSpec}}

func templateMetadata(f *facts, place string, value any) {
	f.metadata(strings.TrimSuffix(place, ".metadata"), fields(value), false)
}

// podSpec is the spec of a Pod in a kind that is known to have one.
var podSpec = field{check: readPod}

// harmlessInPods are the fields of a Pod of which every value is harmless: they change it alone.
var harmlessInPods = []string{
	"activeDeadlineSeconds", "affinity", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases", "hostname", "nodeSelector", "os", "preemptionPolicy",
	"readinessGates", "restartPolicy", "schedulingGates", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds",
	"topologySpreadConstraints",
}

// harmlessInContainers are those of a container.
var harmlessInContainers = []string{
	"args", "command", "image", "imagePullPolicy", "name", "resizePolicy", "restartPolicy", "restartPolicyRules", "stdin", "stdinOnce",
	"terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices", "workingDir",
}

// harmlessVolumes are the sources of volumes of which every value is harmless. Others are read by volume.
var harmlessVolumes = []string{"downwardAPI", "emptyDir", "image"}

// harmlessResources are what every node has; others are devices.
var harmlessResources = []string{"cpu", "ephemeral-storage", "memory"}

// harmlessTolerations are of taints that say that a node does not work.
var harmlessTolerations = []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}

// readers read the other fields of Pods and containers. Those that are in none of these tables are not on the list.
type readers map[string]func(f *facts, at spot, value any)

var podReaders = readers{
	"automountServiceAccountToken": func(f *facts, at spot, value any) {
		f.bind(isFalse(value), at, "automountServiceAccountToken: false")
	},
	"hostIPC":     power("uses hostIPC"),
	"hostNetwork": power("uses hostNetwork"),
	"hostPID":     power("uses hostPID"),
	"hostUsers": func(f *facts, at spot, value any) {
		f.bind(isFalse(value), at, "hostUsers: false")
	},
	"imagePullSecrets":   func(f *facts, at spot, value any) { secretList(f, at.place, value) },
	"nodeName":           named("runs on the node ", ""),
	"priorityClassName":  named("has the priorityClassName ", ""),
	"runtimeClassName":   named("has the runtimeClassName ", ""),
	"schedulerName":      named("has the schedulerName ", "default-scheduler"),
	"securityContext":    security,
	"serviceAccount":     account,
	"serviceAccountName": account,
	"tolerations":        tolerations,
	"volumes": func(f *facts, at spot, value any) {
		for i, item := range list(value) {
			volume(f, spot{placeOf(at.place+".volumes", i, item), at.prefix}, fields(item))
		}
	},
}

var containerReaders = readers{
	"env":     environment,
	"envFrom": environmentFrom,
	"lifecycle": func(f *facts, at spot, value any) {
		for _, handler := range fields(value) {
			probe(f, at, handler)
		}
	},
	"livenessProbe":   probe,
	"ports":           hostPorts,
	"readinessProbe":  probe,
	"resources":       resources,
	"securityContext": security,
	"startupProbe":    probe,
	"volumeMounts": func(f *facts, at spot, value any) {
		for _, item := range list(value) {
			f.hold(text(fields(item)["mountPropagation"]) == "Bidirectional", at, "mounts into the node")
		}
	},
}

func power(words string) func(*facts, spot, any) {
	return func(f *facts, at spot, value any) { f.hold(isTrue(value), at, words) }
}

func named(words, normal string) func(*facts, spot, any) {
	return func(f *facts, at spot, value any) {
		f.hold(text(value) != "" && text(value) != normal, at, words+text(value))
	}
}

func account(f *facts, at spot, value any) {
	if name := text(value); name != "" {
		f.accounts[at.place] = name
	}
}

// readPod reads the spec of a Pod. A field that is in no table is not on the list.
func readPod(f *facts, place string, value any) {
	at := spot{place: place}
	spec := fields(value)
	f.places[place] = ""
	if !isFalse(spec["automountServiceAccountToken"]) {
		f.accounts[place] = defaultAccount
	}
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		switch {
		case slices.Contains(harmlessInPods, name):
		case podReaders[name] != nil:
			podReaders[name](f, at, spec[name])
		case name == "containers" || name == "initContainers":
			for i, item := range list(spec[name]) {
				container(f, place, placeOf(place+"."+name, i, item), fields(item))
			}
		default:
			f.leave(place+"."+name, spec[name])
		}
	}
}

func container(f *facts, pod, place string, of map[string]any) {
	at := spot{place, "container " + text(of["name"]) + ": "}
	f.places[place] = pod
	for _, name := range slices.Sorted(maps.Keys(of)) {
		switch {
		case slices.Contains(harmlessInContainers, name):
		case containerReaders[name] != nil:
			containerReaders[name](f, at, of[name])
		default:
			f.leave(place+"."+name, of[name])
		}
	}
}

// volume reads one of a Pod.
func volume(f *facts, at spot, of map[string]any) {
	for _, source := range slices.Sorted(maps.Keys(of)) {
		value := fields(of[source])
		switch {
		case source == "name" || slices.Contains(harmlessVolumes, source):
		case source == "configMap":
			f.refer("", configMapKind, value["name"])
		case source == "secret":
			f.refer("", secretKind, value["secretName"])
		case source == "persistentVolumeClaim":
			f.refer("", claimKind, value["claimName"])
		case source == "projected":
			for _, item := range list(value["sources"]) {
				projection(f, at, fields(item))
			}
		case source == "ephemeral":
			claimSpec.read(f, fields(value["volumeClaimTemplate"])["spec"], at.place+".ephemeral.volumeClaimTemplate.spec")
		case source == "hostPath":
			f.hold(true, at, fmt.Sprintf("mounts %s of the node", text(value["path"])))
		default:
			f.leave(at.place+"."+source, of[source])
		}
	}
}

// projection reads a source of a projected volume.
func projection(f *facts, at spot, of map[string]any) {
	for source, value := range of {
		switch source {
		case "clusterTrustBundle", "downwardAPI":
		case "configMap":
			f.refer("", configMapKind, fields(value)["name"])
		case "secret":
			f.refer("", secretKind, fields(value)["name"])
		case "serviceAccountToken":
			audience := text(fields(value)["audience"])
			f.hold(audience != "", at, "gets a token for "+audience)
		default:
			f.leave(at.place+".projected."+source, value)
		}
	}
}

func tolerations(f *facts, at spot, value any) {
	for _, item := range list(value) {
		toleration := fields(item)
		key := text(toleration["key"])
		if slices.Contains(harmlessTolerations, key) {
			continue
		}
		if key == "" {
			key = "any key"
		}
		words := "tolerates taints of " + key
		for _, field := range []string{"value", "effect"} {
			if text(toleration[field]) != "" {
				words += fmt.Sprintf(", %s %s", field, text(toleration[field]))
			}
		}
		f.hold(true, at, words)
	}
}

func environment(f *facts, at spot, value any) {
	for _, item := range list(value) {
		for source, from := range fields(fields(item)["valueFrom"]) {
			switch source {
			case "fieldRef", "fileKeyRef", "resourceFieldRef":
			case "secretKeyRef":
				f.refer("", secretKind, fields(from)["name"])
			case "configMapKeyRef":
				f.refer("", configMapKind, fields(from)["name"])
			default:
				f.leave(placeOf(at.place+".env", 0, item)+"."+source, from)
			}
		}
	}
}

func environmentFrom(f *facts, at spot, value any) {
	for i, item := range list(value) {
		for source, from := range fields(item) {
			switch source {
			case "prefix":
			case "secretRef":
				f.refer("", secretKind, fields(from)["name"])
			case "configMapRef":
				f.refer("", configMapKind, fields(from)["name"])
			default:
				f.leave(fmt.Sprintf("%s.envFrom[%d].%s", at.place, i, source), from)
			}
		}
	}
}

// probe reads a probe, or a handler of the lifecycle. The node sends their requests, so that another host than the Pod counts.
func probe(f *facts, at spot, value any) {
	for _, how := range []string{"httpGet", "tcpSocket"} {
		host := text(fields(fields(value)[how])["host"])
		f.hold(host != "" && host != "127.0.0.1" && host != "localhost", at, "has the node connect to "+host)
	}
}

func hostPorts(f *facts, at spot, value any) {
	for _, item := range list(value) {
		if port := scalar(fields(item)["hostPort"]); port != "" && port != "0" {
			f.hold(true, at, fmt.Sprintf("uses port %s of the node", port))
		}
	}
}

// resources reads requests and limits of a container or Pod.
func resources(f *facts, at spot, value any) {
	for field, amounts := range fields(value) {
		if field != "limits" && field != "requests" {
			f.leave(at.place+".resources."+field, amounts)
			continue
		}
		for name := range fields(amounts) {
			if !slices.Contains(harmlessResources, name) && !strings.HasPrefix(name, "hugepages-") {
				f.hold(true, at, "requests the device "+name)
			}
		}
	}
}
