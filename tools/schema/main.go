// SPDX-License-Identifier: Apache-2.0
// Copyright The Holdfast authors

// Writes the tables of src/api/schema_*.c, and objects with every field set for their tests,
// from the Go types of Kubernetes.  See README.md beside this file.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A file to write: its name and heading, the types with which it begins, and whether it has the table of kinds.
type file struct {
	name, about string
	roots       []any
	kinds       bool
}

var files = []file{
	{"meta", "Metadata, selectors and references.", []any{metav1.ObjectMeta{}, metav1.LabelSelector{},
		corev1.LocalObjectReference{}, corev1.ObjectReference{}, corev1.TypedLocalObjectReference{},
		corev1.NodeSelector{}, corev1.ObjectFieldSelector{}, corev1.ResourceFieldSelector{}}, false},
	{"volume", "Volumes and claims.", []any{corev1.Volume{}, corev1.PersistentVolumeClaimSpec{},
		corev1.PersistentVolumeClaimStatus{}}, false},
	{"container", "Containers, as asked for and as they are.", []any{corev1.Container{},
		corev1.EphemeralContainer{}, corev1.ContainerStatus{}}, false},
	{"pod", "Pods.", []any{corev1.PodSpec{}, corev1.PodStatus{}, corev1.PodTemplateSpec{}}, false},
	{"kinds", "The kinds, and what only they have.", []any{corev1.Binding{}, corev1.ConfigMap{},
		metav1.DeleteOptions{}, corev1.Event{}, coordinationv1.Lease{}, corev1.Namespace{}, corev1.Node{},
		corev1.PersistentVolumeClaim{}, corev1.Pod{}, rbacv1.Role{}, rbacv1.RoleBinding{},
		autoscalingv1.Scale{}, corev1.Secret{}, corev1.ServiceAccount{}, corev1.Service{}}, true},
}

var (
	timeType      = reflect.TypeOf(metav1.Time{})
	microTimeType = reflect.TypeOf(metav1.MicroTime{})
	quantityType  = reflect.TypeOf(resource.Quantity{})
	intOrString   = reflect.TypeOf(intstr.IntOrString{})
	fieldsV1      = reflect.TypeOf(metav1.FieldsV1{})
	typeMeta      = reflect.TypeOf(metav1.TypeMeta{})
)

func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z' || (i+1 < len(name) && name[i+1] >= 'a')) {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

type maker struct {
	home     map[reflect.Type]string // the file that has it
	external map[reflect.Type]bool   // other files refer to it
	order    map[string][]reflect.Type
}

// Returns the struct inside a pointer, slice or map type; nil if there is none.
func message(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	switch t {
	case timeType, microTimeType, quantityType, intOrString, fieldsV1:
		return nil
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func (m *maker) visit(t reflect.Type, in string) {
	if home, ok := m.home[t]; ok {
		if home != in {
			m.external[t] = true
		}
		return
	}
	m.home[t] = in
	for i := range t.NumField() {
		if f := t.Field(i); f.Type != typeMeta {
			if inner := message(f.Type); inner != nil {
				m.visit(inner, in)
			}
		}
	}
	m.order[in] = append(m.order[in], t)
}

func scalar(t reflect.Type) string {
	switch t {
	case timeType:
		return "TIME"
	case microTimeType:
		return "MICRO_TIME"
	case quantityType:
		return "QUANTITY"
	case intOrString:
		return "INT_OR_STRING"
	case fieldsV1:
		return "RAW"
	}
	switch t.Kind() {
	case reflect.String:
		return "STRING"
	case reflect.Bool:
		return "BOOL"
	case reflect.Int32:
		return "INT32"
	case reflect.Int64:
		return "INT64"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "BYTES"
		}
	}
	panic("no type for " + t.String())
}

func (m *maker) ref(t reflect.Type) string {
	if m.external[t] {
		return "hf_schema_" + snake(t.Name())
	}
	return snake(t.Name())
}

type row struct {
	name, text string
	number     int
}

func (m *maker) row(f reflect.StructField) row {
	tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	number, err := strconv.Atoi(strings.Split(f.Tag.Get("protobuf"), ",")[1])
	if err != nil {
		panic(f.Name)
	}
	t, shape := f.Type, "ONE"
	switch {
	case strings.Contains(options, "inline"):
		shape = "INLINE"
		tag = strings.ToLower(f.Name[:1]) + f.Name[1:]
	case t.Kind() == reflect.Pointer:
		t, shape = t.Elem(), "OPT"
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		t, shape = t.Elem(), "LIST"
	case t.Kind() == reflect.Map:
		t, shape = t.Elem(), "MAP"
	case !strings.Contains(options, "omitempty") && t.Kind() != reflect.Struct:
		shape = "REQ"
	}
	if inner := message(t); inner != nil {
		return row{tag, fmt.Sprintf("%s_OF(%d, %q, %s)", shape, number, tag, m.ref(inner)), number}
	}
	return row{tag, fmt.Sprintf("%s(%d, %q, %s)", shape, number, tag, scalar(t)), number}
}

func (m *maker) table(b *bytes.Buffer, t reflect.Type) {
	var rows []row
	kind := false
	for i := range t.NumField() {
		if f := t.Field(i); f.Type == typeMeta {
			kind = true
		} else {
			rows = append(rows, m.row(f))
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].number < rows[j].number })
	name := snake(t.Name())
	fmt.Fprintf(b, "static const struct hf_schema_field %s_fields[] = {\n", name)
	if kind {
		fmt.Fprintf(b, "\tTYPE_META,\n")
	}
	for _, r := range rows {
		fmt.Fprintf(b, "\t%s,\n", r.text)
	}
	fmt.Fprintf(b, "\tEND,\n};\n")
	static := "static "
	if m.external[t] {
		static = ""
	}
	fmt.Fprintf(b, "%sconst struct hf_schema %s = {%q, %s_fields};\n\n", static, m.ref(t), t.Name(), name)
}

func (m *maker) write(dir string, f file) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* %s  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
`, f.about)
	for _, t := range m.order[f.name] {
		m.table(&b, t)
	}
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "schema_"+f.name+".c"), []byte(text), 0o644); err != nil {
		panic(err)
	}
}

// ---- an object with every field set

type filler struct{ n int64 }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(metav1.Time{Time: time.Unix(1700000000+f.n, 0).UTC()}))
		return
	case microTimeType:
		v.Set(reflect.ValueOf(metav1.MicroTime{Time: time.Unix(1700000000+f.n, 123456000).UTC()}))
		return
	case quantityType:
		v.Set(reflect.ValueOf(resource.MustParse(fmt.Sprintf("%dMi", f.n))))
		return
	case intOrString:
		if f.n%2 == 0 {
			v.Set(reflect.ValueOf(intstr.FromInt32(int32(f.n))))
		} else {
			v.Set(reflect.ValueOf(intstr.FromString(fmt.Sprintf("port%d", f.n))))
		}
		return
	case fieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(-f.n)
	case reflect.Int64:
		v.SetInt(f.n << 33)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(fmt.Sprintf("bytes\xff%d", f.n)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		f.fill(value)
		v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("key-%d", f.n)).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Type != typeMeta {
				f.fill(v.Field(i))
			}
		}
	default:
		panic(v.Type().String())
	}
}

func sample(dir string, object any, filled bool) {
	p := reflect.New(reflect.TypeOf(object))
	t := p.Elem().Type()
	if filled {
		(&filler{}).fill(p.Elem())
	}
	group := "v1"
	switch t.PkgPath() {
	case "k8s.io/api/coordination/v1":
		group = "coordination.k8s.io/v1"
	case "k8s.io/api/rbac/v1":
		group = "rbac.authorization.k8s.io/v1"
	case "k8s.io/api/autoscaling/v1":
		group = "autoscaling/v1"
	}
	raw, err := p.Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		panic(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: group, Kind: t.Name()}, Raw: raw}
	envelope, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	envelope = append([]byte("k8s\x00"), envelope...)
	p.Elem().FieldByName("TypeMeta").Set(reflect.ValueOf(metav1.TypeMeta{APIVersion: group, Kind: t.Name()}))
	text, err := json.Marshal(p.Interface())
	if err != nil {
		panic(err)
	}
	name := snake(t.Name())
	if !filled {
		name += "_empty"
	}
	must(os.MkdirAll(dir, 0o755))
	must(os.WriteFile(filepath.Join(dir, name+".pb"), envelope, 0o644))
	must(os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: schema TABLES-FOLDER SAMPLES-FOLDER")
		os.Exit(2)
	}
	m := &maker{map[reflect.Type]string{}, map[reflect.Type]bool{}, map[string][]reflect.Type{}}
	for _, f := range files {
		for _, root := range f.roots {
			m.visit(reflect.TypeOf(root), f.name)
			if f.kinds {
				m.external[reflect.TypeOf(root)] = true
			}
		}
	}
	m.external[reflect.TypeOf(corev1.PodTemplateSpec{})] = true // the jobs'
	for _, f := range files {
		m.write(os.Args[1], f)
		if f.kinds {
			for _, root := range f.roots {
				sample(os.Args[2], root, true)
				sample(os.Args[2], root, false)
			}
		}
	}
}
