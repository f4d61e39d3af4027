// A client of the HTTP API whose types are generated from the OpenAPI document: it adds a task and reads it back.
import createClient from "openapi-fetch";
import type { paths } from "./api.mjs";

const client = createClient<paths>({
  baseUrl: process.env["ORC_URL"] ?? "",
  headers: { Authorization: `Bearer ${process.env["ORC_TOKEN"]}` },
});
const made = await client.POST("/api/v1/tasks", { body: { title: "Made over HTTP", spec: "nothing" } });
if (made.error) throw new Error(JSON.stringify(made.error));
const read = await client.GET("/api/v1/tasks/{id}", { params: { path: { id: made.data.id } } });
if (read.error) throw new Error(JSON.stringify(read.error));
if (read.data.title !== "Made over HTTP") throw new Error(JSON.stringify(read.data));
const wrong = await client.GET("/api/v1/tasks/{id}", { params: { path: { id: "missing" } } });
if (wrong.error?.error.code !== "not_found") throw new Error(JSON.stringify(wrong.error));
