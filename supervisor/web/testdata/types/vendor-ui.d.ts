// What the pages use of preact, htm and signals.
export interface Signal<T> { value: T; peek(): T }
type Change<T> = (next: T | ((old: T) => T)) => void;
type Undo = void | (() => void);
export function signal<T>(value: T): Signal<T>;
export function computed<T>(of: () => T): { readonly value: T };
export function effect(run: () => Undo): () => void;
export function batch(run: () => void): void;
export function untracked<T>(of: () => T): T;
export function useState<T>(first: T | (() => T)): [T, Change<T>];
export function useEffect(run: () => Undo, on?: unknown[]): void;
export function useLayoutEffect(run: () => Undo, on?: unknown[]): void;
export function useMemo<T>(of: () => T, on: unknown[]): T;
export function useRef<T>(first: T): { current: T };
export function html(parts: TemplateStringsArray, ...values: any[]): any;
export function h(...of: any[]): any;
export function render(of: any, into: Element): void;
