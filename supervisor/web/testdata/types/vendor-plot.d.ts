// What the pages use of uPlot.
declare const Plot: new (options: any, data: any, into: Element) => any;
export default Plot;
