// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"path"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// pods are those of the controllers; nothing where they cannot be listed, which system has noted.
func (d *dumper) pods(ctx context.Context) []unstructured.Unstructured {
	pods, err := d.Installed(ctx, check.PodsResource, check.PartOfSatchel)
	if err != nil {
		return nil
	}
	return pods
}

// logs are those of the controllers' containers, of now and of before their last restart.
func (d *dumper) logs(ctx context.Context) error {
	for _, pod := range d.pods(ctx) {
		for _, container := range containersOf(&pod) {
			for _, previous := range []bool{false, true} {
				if previous && container.restarts == 0 {
					continue
				}
				if err := d.log(ctx, pod.GetName(), container.name, previous); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// container is one of a Pod.
type container struct {
	name     string
	restarts int64
}

func containersOf(pod *unstructured.Unstructured) []container {
	var all []container
	restarts := map[string]int64{}
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, s := range statuses {
		one, _ := s.(map[string]any)
		name, _ := one["name"].(string)
		restarts[name], _, _ = unstructured.NestedInt64(one, "restartCount")
	}
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		one, _ := c.(map[string]any)
		name, _ := one["name"].(string)
		all = append(all, container{name: name, restarts: restarts[name]})
	}
	return all
}

// log adds the end of one log.
func (d *dumper) log(ctx context.Context, pod, container string, previous bool) error {
	ctx, cancel := context.WithTimeout(ctx, check.ProxyPatience)
	defer cancel()
	stream, err := d.Raw.Get().AbsPath("/api/v1/namespaces", d.Namespace, "pods", pod, "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").
		Param("tailLines", strconv.Itoa(mostLines)).Param("limitBytes", strconv.Itoa(MostOfFile)).Stream(ctx)
	name := pod + "/" + container + map[bool]string{true: " before its last restart"}[previous]
	if err != nil {
		d.Omitted.Add("the log of %s: %s", name, d.WhyNot(err))
		return nil
	}
	defer stream.Close() //nolint:errcheck // read only
	content, err := readBounded(stream, d.archive.room())
	if err != nil {
		d.Omitted.Add("the end of the log of %s: %s", name, d.WhyNot(err))
	}
	d.take("the log of %s", name)
	file := SafeName(container) + map[bool]string{true: ".previous"}[previous] + ".log"
	return d.archive.Add(path.Join("logs", SafeName(pod), file), []byte(printer.RedactText(string(content))))
}

// metrics are those of the controllers, through the API server's proxy.
func (d *dumper) metrics(ctx context.Context) error {
	for _, pod := range d.pods(ctx) {
		limited, cancel := context.WithTimeout(ctx, check.ProxyPatience)
		stream, err := d.Raw.Get().AbsPath("/api/v1/namespaces", d.Namespace, "pods", "http:"+pod.GetName()+":8080", "proxy", "metrics").Stream(limited)
		if err != nil {
			cancel()
			d.Omitted.Add("the metrics of %s: %s", pod.GetName(), d.WhyNot(err))
			continue
		}
		content, err := readBounded(stream, d.archive.room())
		_ = stream.Close()
		cancel()
		if err != nil {
			d.Omitted.Add("the end of the metrics of %s: %s", pod.GetName(), d.WhyNot(err))
		}
		d.take("the metrics of %s", pod.GetName())
		if err := d.archive.Add(path.Join("metrics", SafeName(pod.GetName())+".txt"), []byte(printer.RedactText(string(content)))); err != nil {
			return err
		}
	}
	return nil
}
