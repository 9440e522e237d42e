// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// typePrefix begins the types of CloudEvents, as in dev.satchel.bundledeployment.Upgraded.
const typePrefix = "dev.satchel."

// Data is the data of a CloudEvent.
type Data struct {
	// Object that the event is about.
	Object Object `json:"object"`
	// Severity is info or error.
	Severity string `json:"severity"`
	// Reason is that of the event in Kubernetes, such as Upgraded, or that of a condition.
	Reason string `json:"reason"`
	// Message is for people.
	Message string `json:"message"`
	// Revision and OriginRevision are what the event is about; empty where there is none yet.
	Revision       string `json:"revision,omitempty"`
	OriginRevision string `json:"originRevision,omitempty"`
	// Controller and Instance have reported the event; the instance is a Pod.
	Controller string `json:"controller"`
	Instance   string `json:"instance"`
}

// Object is an object in a CloudEvent.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// inCloudEvents encodes an event as a CloudEvent 1.0 in the structured mode of HTTP. All attempts to post it have the same id.
func inCloudEvents(o occurrence) []post {
	kind := strings.ToLower(o.about.Kind)
	e := event.New(event.CloudEventsVersionV1)
	e.SetID(string(uuid.NewUUID()))
	e.SetSource("/satchel.dev/" + o.controller)
	e.SetType(typePrefix + kind + "." + o.reason)
	e.SetSubject(pathOf(o.about.GroupVersionKind(), o.about.Namespace, o.about.Name))
	e.SetTime(o.time.UTC())
	revision, origin := revisionsOf(o.object)
	err := e.SetData(event.ApplicationJSON, Data{
		Object:   Object{APIVersion: o.about.APIVersion, Kind: o.about.Kind, Namespace: o.about.Namespace, Name: o.about.Name, UID: string(o.about.UID)},
		Severity: o.severity(), Reason: o.reason, Message: o.message, Revision: revision, OriginRevision: origin, Controller: o.controller, Instance: o.from,
	})
	if err != nil {
		return nil // strings only: it cannot fail
	}
	return []post{{reason: o.reason, contentType: event.ApplicationCloudEventsJSON, body: e}}
}

// pathOf is the path of an object of Satchel in the API of the cluster.
func pathOf(kind schema.GroupVersionKind, namespace, name string) string {
	return "/apis/" + kind.GroupVersion().String() + "/namespaces/" + namespace + "/" + strings.ToLower(kind.Kind) + "s/" + name
}
