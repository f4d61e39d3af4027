// What the pages use of dagre.
export const Graph: new (options?: any) => any;
export function layout(graph: any): void;
